package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/callpage"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/surface"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

func newConsole() *cobra.Command {
	var listen string
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "console [REPORT]",
		Short: "Serve a page to call the tools of a bridge as any caller, and see both sides",
		Long: `console serves one page on this machine. It shows the tools as each caller sees them, makes a form
of a tool's inputSchema, calls it as any caller over REST or MCP, and shows the exchange and what
reached the site behind the bridge. With a report it shows the failed clauses, and their exchanges
ready to be sent again. Nobody opens the page without the token in the address that it prints.

The bridge is that of --url, --exec or --mcp-stdio with the flags of run, or the reference bridge in
this process. Ctrl-C ends it, and what it started.`,
		Example: `  bridgecheck console
  bridgecheck console --exec 'node bridge.js'
  bridgecheck console --url http://127.0.0.1:8080 --mock-listen 127.0.0.1:8081
  bridgecheck console bridgecheck-report --exec 'node bridge.js'`,
		Args: someArguments(0, 1, "a report.json or a directory with one at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if host, _, err := net.SplitHostPort(listen); err != nil || !loopback.Is(host) {
				return usagef("--listen is %q: give an address of this machine alone, for example 127.0.0.1:8083", listen)
			}
			var report *reports.Report
			if len(args) == 1 {
				var err error
				if report, err = readReport(args[0]); err != nil {
					return err
				}
				if !slices.ContainsFunc([]string{"url", "exec", "mcp-stdio", "config"}, cmd.Flags().Changed) && report.Target.Name != referenceBridge {
					return usagef("the report is of %s: name the bridge to send to by --url, --exec or --config, as for its run", report.Target.Title())
				}
			}
			return f.onStage(cmd, func(target engine.Target, name string, o engine.Options) error {
				return serveConsole(cmd, listen, target, name, o, report)
			})
		},
	}
	settings.AddSome(cmd.Flags(), &f.Values, "config", "url", "exec", "mock-listen", "drupal", "drupal-proxy", "with-module", "mcp-stdio", "env", "ready-timeout",
		"login", "device", "client-id", "issuer", "capabilities", "page-size", "discovery-ttl", "upstream-timeout", "timeout", "rate")
	cmd.Flags().Lookup("login").NoOptDefVal = string(check.Agent)
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8083", "`HOST:PORT` to listen on, of this machine alone; port 0 takes a free one")
	return cmd
}

// serveConsole serves the page until the context of the command ends.
func serveConsole(cmd *cobra.Command, listen string, target engine.Target, name string, o engine.Options, report *reports.Report) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return cannotListen("listen", listen, err)
	}
	defer listener.Close()
	address := listener.Addr().(*net.TCPAddr)
	page := callpage.Options{
		Token: strings.ToLower(rand.Text()), Title: cmp.Or(target.Name, name), Mock: o.Site.Drupal, Report: report,
		Hosts: []string{address.String(), fmt.Sprintf("localhost:%d", address.Port)}, Ways: []string{callpage.REST, callpage.MCP},
		Redact: o.Redactor().Text,
		List: func(ctx context.Context) (*surface.Surface, map[string]string, error) {
			broken := map[string]string{}
			if o.Bridge.Advance != nil { // the reference bridge in this process shows what changed at once
				o.Bridge.Advance(o.Bridge.DiscoveryTTL)
			}
			seen, err := list(ctx, target, o, broken)
			return seen, broken, err
		},
		Call: func(ctx context.Context, call callpage.Call) (callpage.Sent, error) {
			if report != nil && o.Site.Drupal != nil { // the caller may be an account that the check created
				if _, err := engine.Recreate(report, call.Clause, o.Site.Drupal); err != nil {
					return callpage.Sent{}, err
				}
			}
			return send(ctx, target, o, call)
		},
	}
	switch {
	case o.Site.Drupal != nil:
		page.Site = o.Site.Drupal.Recorder
	case o.Site.Recorder != nil:
		page.Site = o.Site.Recorder.Recorder
	}
	if !slices.Contains(o.Capabilities, "tools") {
		page.Ways = []string{callpage.MCP}
	}
	handler, err := callpage.Handler(cmd.Context(), page)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(cmd.Context(), func() { server.Close() })()
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "listening on http://%s/%s/\n", address, page.Token); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the console: %w", err)
	}
	return nil
}

// send sends a call as a check does, so that both sides of it are evidence, without secrets.
func send(ctx context.Context, target engine.Target, o engine.Options, call callpage.Call) (sent callpage.Sent, err error) {
	clause := &contract.Clause{ID: "console/call", Level: contract.MUST, Text: "A call.",
		Reason: contract.Reason{Why: "Somebody sends it.", Fix: contract.Fix{Any: "Nothing."}}}
	if call.Way == callpage.MCP {
		clause.Needs = "mcp"
		if !slices.Contains(o.Capabilities, "mcp") { // what is not claimed may be tried
			o.Capabilities = append(slices.Clone(o.Capabilities), "mcp")
		}
	}
	var raw check.Request
	if call.Way == callpage.HTTP {
		if raw, err = requestOf(call.Request); err != nil {
			return sent, err
		}
	}
	sent.Result, err = engine.Try(ctx, target, o, check.Check{Clause: clause, Run: func(ctx context.Context, t *check.T) {
		as := t.As(settings.IdentityNamed(call.Caller)).WithoutWaiting()
		if call.Way == callpage.HTTP {
			if call.Request.Session {
				raw.Header["Mcp-Session-Id"] = []string{as.MCP(ctx, cmp.Or(check.Revision(raw.Header.Get("Mcp-Protocol-Version")), check.MCP2025June)).ID}
			}
			sent.Clauses = t.ShownBy(as.Send(ctx, raw))
		} else if call.Way == callpage.REST {
			sent.Clauses = t.ShownBy(as.Invoke(ctx, call.Tool, call.Arguments))
		} else if session, opened := as.AnyMCP(ctx); opened {
			sent.Clauses = t.ShownBy(session.CallTool(ctx, call.Tool, call.Arguments))
		}
		t.Fail(check.Finding{Subject: "the call"}) // which keeps the bodies of the exchanges
	}})
	return sent, err
}

// requestOf is a request of the page. It has the headers that it names and no others, but for credentials.
func requestOf(r *callpage.Request) (check.Request, error) {
	path, query, _ := strings.Cut(r.Path, "?")
	made := check.Request{Method: r.Method, Path: path, Raw: query, Header: http.Header{"Accept": nil}, Show: *r.Body}
	if *r.Body != "" {
		made.Header["Content-Type"] = nil
		made.Body = strings.NewReader(*r.Body)
	}
	for line := range strings.Lines(r.Header) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case ok:
			made.Header.Add(name, strings.TrimSpace(value))
		case name != "":
			return made, fmt.Errorf("the header %q is not NAME: VALUE", name)
		}
	}
	return made, nil
}
