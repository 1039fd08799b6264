package main

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
)

// cannotListen is the error for an address of a flag that is taken, or is none.
func cannotListen(flag, addr string, err error) error {
	return usagef("cannot listen at %s: %s; give another HOST:PORT by --%s", addr, reason(err), flag)
}

// reason is the innermost error's text, without the address and the system call around it, which the caller names.
func reason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// sayListening prints the address that a serving command got.
func sayListening(cmd *cobra.Command, url string) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", reachable(url))
	return err
}

// reachable is how a client on this machine reaches a server that may listen on every address.
func reachable(base string) string {
	scheme, addr, _ := strings.Cut(base, "://")
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return base
	}
	return scheme + "://" + net.JoinHostPort("127.0.0.1", port)
}
