// Command slowsite starts a bridge whose site takes its time: `slowsite -delay 300ms bin/bridgecheck bridge` starts that
// command with a DRUPAL_URL of its own, and passes each response of the site at DRUPAL_URL on after the delay. A site that
// refuses connections or hangs does so here, too. It ends with the command.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/processtree"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv("DRUPAL_URL")); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "slowsite:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, drupal string) error {
	flags := flag.NewFlagSet("slowsite", flag.ContinueOnError)
	delay := flags.Duration("delay", 300*time.Millisecond, "how much longer each response takes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	site, err := url.Parse(drupal)
	if err != nil || site.Host == "" || flags.NArg() == 0 {
		return errors.New("give the address of the site in DRUPAL_URL, and the command of the bridge as arguments")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: slowly(site, *delay), ErrorLog: log.New(io.Discard, "", 0)}
	defer server.Close()
	go server.Serve(listener) //nolint:errcheck // it ends with the bridge
	cmd := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	cmd.Env = append(os.Environ(), "DRUPAL_URL=http://"+listener.Addr().String())
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	bridges := processtree.NewGroup()
	defer bridges.Close(time.Second)
	tree, err := bridges.Start(cmd)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { tree.Stop(time.Second) })()
	return cmd.Wait()
}

// slowly is the site, whose responses come after a delay.
func slowly(site *url.URL, delay time.Duration) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(site); r.Out.Host = r.In.Host },
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		ErrorLog:  log.New(io.Discard, "", 0),
		ModifyResponse: func(r *http.Response) error {
			select {
			case <-time.After(delay):
				return nil
			case <-r.Request.Context().Done():
				return r.Request.Context().Err()
			}
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
}
