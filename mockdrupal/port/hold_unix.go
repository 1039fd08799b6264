//go:build unix

package port

import (
	"fmt"
	"net"
	"os"
	"syscall"
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

// queue lets the port listen with a short queue that nothing accepts connections from.
func (h *hold) queue() error { return syscall.Listen(h.fd, 1) }

// release gives the port up.
func (h *hold) release() { syscall.Close(h.fd) }
