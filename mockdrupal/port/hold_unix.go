//go:build unix

package port

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// hold keeps a TCP port that nothing listens on: connections are refused, and no other process can take it.
type hold struct{ fd int }

// holdPort binds the address without listening. It fails when the port is no longer free.
func holdPort(addr *net.TCPAddr) (*hold, error) {
	family, sockaddr := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: addr.Port, Addr: [16]byte(addr.IP.To16())})
	if ip := addr.IP.To4(); ip != nil {
		family, sockaddr = syscall.AF_INET, &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip)}
	}
	syscall.ForkLock.RLock() // a process started meanwhile must not inherit the socket
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("opening a socket: %w", err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err == nil {
		err = syscall.Bind(fd, sockaddr)
		if err == nil {
			return &hold{fd}, nil
		}
	}
	syscall.Close(fd)
	return nil, fmt.Errorf("holding %s: the port cannot be bound", addr)
}

// listen turns the held port into a listener.
func (h *hold) listen() (net.Listener, error) {
	if err := syscall.Listen(h.fd, syscall.SOMAXCONN); err != nil {
		h.release()
		return nil, err
	}
	f := os.NewFile(uintptr(h.fd), "held port")
	defer f.Close() // FileListener has a copy
	return net.FileListener(f)
}

// How a queue is filled: connections that we open, at most, and how long one may take before the queue counts as full.
const (
	fillers    = 1024
	fillerTime = 150 * time.Millisecond
)

// fill lets the port listen with a short queue that nothing accepts connections from, and fills it: later clients
// time out. It returns the connections that fill it, and fails where connections are accepted without end.
func (h *hold) fill(address string) (filling []net.Conn, err error) {
	if err := syscall.Listen(h.fd, 1); err != nil {
		return nil, err
	}
	late := 0
	for range fillers {
		conn, err := net.DialTimeout("tcp", address, fillerTime)
		var timeout net.Error
		switch {
		case err == nil:
			filling, late = append(filling, conn), 0
			continue
		case !errors.As(err, &timeout) || !timeout.Timeout():
			return filling, err
		}
		if late++; late == 2 { // one may be late because the machine is busy
			return filling, nil
		}
	}
	return filling, fmt.Errorf("the system accepted %d connections that nothing waits for", len(filling))
}

// release gives the port up.
func (h *hold) release() { syscall.Close(h.fd) }
