//go:build !linux

package bridge

import "net"

// dropNew does nothing: this system has no filter for one listener.
func dropNew(*net.TCPListener) {}
