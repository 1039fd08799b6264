//go:build !unix

package port

import (
	"errors"
	"net"
)

// hold is a held port where the system has no way to hold one: the port is merely free for a while.
type hold struct{}

func holdPort(*net.TCPAddr) (*hold, error) { return nil, errors.ErrUnsupported }

func (*hold) listen() (net.Listener, error) { return nil, errors.ErrUnsupported }
func (*hold) queue() error                  { return errors.ErrUnsupported }
func (*hold) release()                      {}
