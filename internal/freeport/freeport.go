// Package freeport finds addresses for servers that other processes will start. It is for nothing that can listen on port 0.
//
// Its invariant: the ports are below those that systems give to connections and to servers without a port of their own, and no
// two who ask here have the same, so that a busy machine takes none between the choice and its use.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	lowest = 10_000
	beyond = 20_000
	held   = 10_000 // from a port to the one that holds it: below 32768, from where Linux gives out ports, and 49152, as others do
	tries  = 100
)

// Address returns HOST:PORT of this machine where nobody listens. Nobody else is given it, in any process, until release: who
// has it listens at the port that is by held above it.
func Address() (address string, release func(), err error) {
	for range tries {
		port := lowest + rand.IntN(beyond-lowest)
		var mark, l net.Listener
		if mark, err = net.Listen("tcp", at(port+held)); err != nil {
			continue
		}
		if l, err = net.Listen("tcp", at(port)); err != nil {
			mark.Close()
			continue
		}
		l.Close()
		return at(port), func() { mark.Close() }, nil
	}
	return "", nil, fmt.Errorf("find a free port from %d to %d: %w", lowest, beyond-1, err)
}

// Listens reports whether connections to an address are accepted.
func Listens(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func at(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
