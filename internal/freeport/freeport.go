// Package freeport finds addresses for servers that other processes will start. It is for nothing that can listen on port 0.
//
// Its invariant: the ports are below those that systems give to connections and to servers without a port of their own, so
// that a busy machine takes none between the choice and its use.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	lowest = 10_000
	beyond = 30_000 // Linux gives out ports from 32768, other systems from 49152
	tries  = 100
)

// Address returns HOST:PORT of this machine where nobody listens.
func Address() (string, error) {
	var err error
	for range tries {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(beyond-lowest))); err == nil {
			defer l.Close()
			return l.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("find a free port from %d to %d: %w", lowest, beyond-1, err)
}
