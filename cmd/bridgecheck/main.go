// Command bridgecheck tests a bridge between Drupal's JSON-RPC methods and MCP tools against the contract; the mock
// Drupal and the reference bridge are part of it. This package is flags in and exit code out; all else is in the libraries.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
