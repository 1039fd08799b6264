package bridge

import (
	"net"

	"golang.org/x/sys/unix"
)

// dropNew makes the system drop, unanswered, what would open a connection to l: a proxy sends that again after a second, when l is
// closed, is refused and goes to another bridge, while those connections that are half open come to be accepted. Where the
// system has no such filter nothing changes.
func dropNew(l *net.TCPListener) {
	raw, err := l.SyscallConn()
	if err != nil {
		return
	}
	const flags, syn, ack = 13, 0x02, 0x10 // of a TCP header, which is where the filter begins
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
	}
	filter := &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	raw.Control(func(fd uintptr) { //nolint:errcheck // it is closed
		unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter) //nolint:errcheck // see above
	})
}
