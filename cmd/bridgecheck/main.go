// Command bridgecheck tests a bridge between Drupal's JSON-RPC methods and MCP tools against the contract; the mock
// Drupal and the reference bridge are part of it. This package is flags in and exit code out; all else is in the libraries.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/machine"
)

// program is how the user called this one, for the commands that it prints.
var program = "bridgecheck"

func main() {
	if typed := os.Args[0]; typed != "" && !strings.ContainsFunc(typed, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
		program = typed
	}
	machine.BoundMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
