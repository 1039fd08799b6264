package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// cannotListen tells that the address that the flag gave is taken, or is none.
func cannotListen(flag, addr string, err error) error {
	return usagef("cannot listen at %s: %s; give another HOST:PORT by --%s", addr, reason(err), flag)
}

// reason is the innermost error's text: the address and the system call around it are told already.
func reason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// server is what a serving command has started: the mock's own or net/http's.
type server interface {
	Shutdown(context.Context) error
	Close() error
}

// serveUntilInterrupted prints the address that the server got and waits for Ctrl-C. What is under way then has a
// second to end.
func serveUntilInterrupted(cmd *cobra.Command, s server, url string) error {
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", reachable(url)); err != nil {
		return err
	}
	<-cmd.Context().Done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		return s.Close()
	}
	return nil
}

// reachable is how a client on this machine reaches a server that listens on every address.
func reachable(base string) string {
	host, port, err := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return base
	}
	return "http://" + net.JoinHostPort("127.0.0.1", port)
}
