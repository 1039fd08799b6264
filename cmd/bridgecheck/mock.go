package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/control"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
)

// controlTokenEnv is where the control plane's token comes from: a command line can be read by others.
const controlTokenEnv = settings.ControlTokenEnv

// mockFlags are the flags of mock.
type mockFlags struct {
	listen, site, control, withModule string
	quirks                            []string
	flood                             bool
	drupal                            string
	jsonrpc                           int
}

func newMock() *cobra.Command {
	f := &mockFlags{}
	cmd := &cobra.Command{
		Use:   "mock",
		Short: "Serve the mock Drupal alone",
		Example: `  bridgecheck mock --listen 127.0.0.1:8080
  bridgecheck mock --site site.yaml --control 127.0.0.1:8079`,
		Long: `mock serves the JSON-RPC interface of a Drupal site: /jsonrpc, /jsonrpc/methods, users, roles and
permissions. The built-in sites' passwords are NAME-pass, for example

  curl -u agent:agent-pass http://127.0.0.1:8080/jsonrpc/methods

--control serves the control plane, which changes the site, arms faults and reads the journal, on a
separate address. If that is not a loopback address, callers need the token in
` + controlTokenEnv + `. With a token and without --control, the control plane is below /-/mock/
on the site's address.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 takes a free one")
	flags.StringVar(&f.site, "site", "default", "site `FILE|NAME`; bridgecheck fixtures list shows the built-in ones")
	flags.StringVar(&f.control, "control", "", "`HOST:PORT` for the control plane")
	flags.StringVar(&f.withModule, "with-module", "",
		"serve /mcp/tools/* as this `version` of the MCP module does, faults included: v1.3 or v1.4; or mcp: /mcp/post of the module of that name")
	flags.StringSliceVar(&f.quirks, "quirk", nil, "`name` of a peculiarity to switch on, as bridgecheck mock quirks lists them; repeatable")
	flags.BoolVar(&f.flood, "flood", false,
		"refuse logins as a real site does: after five failures of an account from an address, and after 50 of an address")
	flags.StringVar(&f.drupal, "drupal", "", "`version` of Drupal core that the mock is: 10.6 (default), 11.3, 11.4 or 12")
	flags.IntVar(&f.jsonrpc, "jsonrpc", mockdrupal.Line3, "`line` of the jsonrpc module that the mock is: 3, or 2, which was recorded")
	cmd.AddCommand(newQuirks(), newMockVerify(), newMockRecord())
	return cmd
}

// knownLine refuses a line that the mock cannot be.
func knownLine(line int) error {
	if line != mockdrupal.Line2 && line != mockdrupal.Line3 {
		return usagef("--jsonrpc %d: the mock knows the lines 2 and 3 of the jsonrpc module", line)
	}
	return nil
}

func (f *mockFlags) serve(cmd *cobra.Command) error {
	if err := knownLine(f.jsonrpc); err != nil {
		return err
	}
	for name, address := range map[string]string{"listen": f.listen, "control": f.control} {
		if address == "" && (name == "listen" || cmd.Flags().Changed(name)) {
			return usagef("--%s is empty, which would be every address of this machine: give HOST:PORT, for example 127.0.0.1:8080", name)
		}
	}
	site, err := openSite(f.site)
	if err != nil {
		return err
	}
	token, err := settings.SecretFromEnv(controlTokenEnv)
	if err != nil {
		return err
	}
	o := mockdrupal.Options{Quirks: f.quirks, Flood: f.flood, Drupal: f.drupal, JSONRPC: f.jsonrpc}
	if f.control == "" {
		o.ControlToken = token
	}
	if f.withModule != "" {
		extension, err := module.New(f.withModule)
		if err != nil {
			return usageError(err)
		}
		o.Extensions = append(o.Extensions, extension)
	}
	drupal, err := mockdrupal.New(site, o)
	if err != nil {
		return usageError(err)
	}
	if f.control != "" {
		plane, addr, err := drupal.ListenControl(f.control, token)
		if err != nil {
			return usageError(err)
		}
		defer plane.Close()
		cmd.PrintErrf("the control plane is at %s\n", reachable("http://"+addr.String()+control.Prefix))
	}
	server, err := drupal.Listen(f.listen)
	if err != nil {
		return cannotListen("listen", f.listen, err)
	}
	defer server.Close()
	warnOfEveryone(cmd, server.URL, site)
	if err := sayListening(cmd, server.URL); err != nil {
		return err
	}
	<-cmd.Context().Done()
	return nil
}

// warnOfEveryone warns of a mock that others can reach with passwords that they know, and names its addresses.
func warnOfEveryone(cmd *cobra.Command, base string, site *fixtures.Site) {
	host, port, err := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	ip := net.ParseIP(host)
	known := slices.IndexFunc(site.Users, func(u fixtures.User) bool { return u.Password == u.Name+"-pass" })
	if err != nil || ip == nil || loopback.Is(host) || known < 0 {
		return
	}
	addresses := []string{base}
	if ip.IsUnspecified() {
		addresses = nil
		all, _ := net.InterfaceAddrs() // none are named where they cannot be read
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
				addresses = append(addresses, "http://"+net.JoinHostPort(n.IP.String(), port))
			}
		}
	}
	cmd.PrintErrf("warning: others can reach this mock at %s, with passwords that everybody knows (%s:%s-pass); --listen 127.0.0.1:%s keeps them out\n",
		cmp.Or(strings.Join(addresses, ", "), "every address of this machine"), site.Users[known].Name, site.Users[known].Name, port)
}

func newQuirks() *cobra.Command {
	return &cobra.Command{
		Use:     "quirks",
		Short:   "List the peculiarities that --quirk switches on",
		Example: `  bridgecheck mock quirks`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t := newTable(cmd.OutOrStdout())
			for _, q := range quirk.All() {
				t.row(q.Name, strings.ReplaceAll(q.Text, "\n", " "))
			}
			return t.Flush()
		},
	}
}

// healthTime is how long a server has for its response to a health check.
const healthTime = 2 * time.Second

func newHealthy() *cobra.Command {
	return &cobra.Command{
		Use:   "healthy URL|HOST:PORT...",
		Short: "Report by the exit code whether a mock or a bridge is up",
		Example: `  bridgecheck healthy http://127.0.0.1:8081/healthz   a bridge
  bridgecheck healthy 127.0.0.1:8080                  a mock`,
		Long: `healthy is the health check of container images that have neither a shell nor curl. It ends with
0 when one of the addresses responds within ` + healthTime.String() + `, else with 1, and prints why. A URL must respond
with 200; HOST:PORT must accept a connection, which leaves nothing in a mock's journal and no armed
fault used. Certificates of a loopback address are not verified, and no proxy is used.`,
		Args: someArguments(1, -1, "the URL or HOST:PORT of a server"),
		RunE: func(cmd *cobra.Command, addresses []string) error {
			probes := make([]func(context.Context) error, len(addresses))
			for i, address := range addresses {
				var err error
				if probes[i], err = probeOf(address); err != nil {
					return err
				}
			}
			for i, probe := range probes {
				ctx, cancel := context.WithTimeout(cmd.Context(), healthTime)
				err := probe(ctx)
				late := ctx.Err() != nil
				cancel()
				switch {
				case err == nil:
					return nil
				case late:
					err = fmt.Errorf("no response within %s", healthTime)
				}
				cmd.PrintErrf("%s: %s\n", terminal.Escape(addresses[i]), terminal.Escape(reason(err)))
			}
			return exitCode(1)
		},
	}
}

// probeOf returns what asks the server at a URL or HOST:PORT whether it is up.
func probeOf(address string) (func(context.Context) error, error) {
	if !strings.Contains(address, "://") {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return nil, usagef("%q is no address of a server: give a URL or HOST:PORT, for example 127.0.0.1:8080", address)
		}
		return func(ctx context.Context) error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err == nil {
				conn.Close()
			}
			return err
		}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usagef("%q is no address of a server: give a URL of http or https, for example http://127.0.0.1:8081/healthz", address)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: loopback.Is(u.Hostname())}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(req)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("it responds with %d", response.StatusCode)
		}
		return nil
	}, nil
}

// refuseMissing says which flags a command cannot do without.
func refuseMissing(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if !cmd.Flags().Changed(name) {
			flag := cmd.Flags().Lookup(name)
			return usagef("%s needs --%s: %s", cmd.CommandPath(), name, strings.ReplaceAll(flag.Usage, "`", ""))
		}
	}
	return nil
}
