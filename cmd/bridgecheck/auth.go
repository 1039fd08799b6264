package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/login"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

func newAuth() *cobra.Command {
	cmd := &cobra.Command{Use: "auth", Short: "Find out why a login at a bridge behind OAuth fails: doctor",
		Example: "  bridgecheck auth doctor https://drupal.example/mcp --login"}
	cmd.AddCommand(newAuthDoctor())
	return cmd
}

func newAuthDoctor() *cobra.Command {
	var o login.Options
	var asJSON, person bool
	cmd := &cobra.Command{
		Use:   "doctor URL",
		Short: "Say step by step which layer of OAuth fails, with the clause and the remedy",
		Long: `doctor goes the way of an MCP client from the challenge of a bridge to a token, and says at each
layer what it found: challenge, resource metadata (RFC 9728), server metadata (RFC 8414), PKCE,
registration (RFC 7591 or client id metadata), and with --login also authorization, token, audience,
scope and refresh. URL is the MCP endpoint; without a path it is /mcp there.

Without --client-id it registers a client, which the authorization server keeps. With --login it
prints an address, at which you log in. Tokens are thrown away at the end, and never shown. The
secret of a client is in ` + settings.ClientSecretEnv + `, and goes to the server of --issuer alone.

Exit codes: 0 every layer is right · 1 a layer fails · 2 wrong usage · 3 no response.`,
		Example: `  bridgecheck auth doctor https://drupal.example/mcp
  bridgecheck auth doctor https://drupal.example/mcp --login
  bridgecheck auth doctor http://127.0.0.1:8081/mcp --device --json`,
		Args: oneArgument("the URL of an MCP endpoint"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.Resource, err = login.Address(args[0]); err != nil {
				return usageError(err)
			}
			if o.ClientSecret, err = settings.SecretFromEnv(settings.ClientSecretEnv); err != nil {
				return err
			}
			o.Show = showLogin(cmd, "")
			return showSteps(cmd, login.New(o).Diagnose(cmd.Context(), person || o.Device), asJSON)
		},
	}
	cmd.Flags().BoolVar(&person, "login", false, "log in, and try the layers after the registration, too")
	cmd.Flags().BoolVar(&o.Device, "device", false, "log in with a browser on another machine (RFC 8628)")
	cmd.Flags().StringVar(&o.ClientID, "client-id", "", "`id` of a client that is registered, or the address of its metadata")
	cmd.Flags().StringVar(&o.Issuer, "issuer", "", "`URL` of the authorization server, one that the bridge names; a client with a secret needs it")
	cmd.Flags().StringVar(&o.Scope, "scope", "", "`scopes` to ask for, if not those that the bridge names")
	addJSON(cmd, &asJSON)
	return cmd
}

// showSteps prints what was found at each layer. The exit code is that of the first failure.
func showSteps(cmd *cobra.Command, steps []login.Step, asJSON bool) error {
	out, code := cmd.OutOrStdout(), exitOK
	if asJSON {
		if err := writeJSON(out, steps); err != nil {
			return err
		}
	}
	for _, s := range steps {
		switch {
		case s.Fault == login.NoResponse:
			code = exitUnreachable
		case s.State == login.Fails && code == exitOK:
			code = 1
		}
		if asJSON {
			continue
		}
		fmt.Fprintf(out, "%-8s %-18s %s\n", s.State, s.Layer, terminal.Escape(s.Saw))
		if s.Fault != "" {
			fmt.Fprintf(out, "%27s %s\n%27s %s\n", "", strings.TrimSpace(s.Fault+"  "+s.Clause), "", s.Remedy)
		}
	}
	return endWith(code)
}

// showLogin tells a person where to log in, and opens the browser that the environment names.
func showLogin(cmd *cobra.Command, caller string) func(address string) {
	return func(address string) {
		cmd.PrintErrf("bridgecheck: log in%s at %s\n", caller, terminal.Escape(address))
		browser := os.Getenv("BROWSER")
		if browser == "" || strings.Contains(address, " ") {
			return
		}
		opened := exec.Command(browser, address) // it stays when the run ends
		if err := opened.Start(); err != nil {
			cmd.PrintErrf("bridgecheck: %s does not start: %s\n", terminal.Escape(browser), terminal.Escape(reason(err)))
			return
		}
		go opened.Wait() //nolint:errcheck // what the browser ends with is its own affair
	}
}

// logIn gets the tokens of the callers of --login, and has them renewed while the run lasts.
func (p *plan) logIn(cmd *cobra.Command, v *settings.Values) error {
	if len(v.LogIn) == 0 {
		return nil
	}
	base, err := engine.BaseURL(p.target.URL)
	if err != nil {
		return err
	}
	o := login.Options{ClientID: v.ClientID, Issuer: v.Issuer, Device: v.Device}
	if o.Resource, err = login.Address(base.String() + check.MCPPath); err != nil {
		return usageError(err)
	}
	if o.ClientSecret, err = settings.SecretFromEnv(settings.ClientSecretEnv); err != nil {
		return err
	}
	store, err := login.StorePath()
	if err != nil {
		return err
	}
	given := p.legs[0].options
	o.Transport = &http.Transport{TLSClientConfig: given.Connection.TLS, Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: client.MaxHead}
	if given.Connection.Proxy != nil {
		o.Transport.Proxy = given.Connection.Proxy
	}
	credentials, tokens := map[check.Identity]check.Credentials{}, map[check.Identity]func() string{}
	maps.Copy(credentials, given.Callers.Credentials)
	for _, caller := range v.LogIn {
		o.Show = showLogin(cmd, " as "+terminal.Escape(caller))
		session, err := login.Open(cmd.Context(), o, caller, store, func(err error) {
			cmd.PrintErrf("bridgecheck: %s\n", terminal.Escape(err.Error()))
		})
		if failed := (*login.Error)(nil); errors.As(err, &failed) && failed.Fault == login.NoResponse {
			return &engine.UnreachableError{URL: base.String(), Reason: errors.New(failed.Saw)}
		}
		if err != nil {
			return usageError(fmt.Errorf("the login of %s: %w; bridgecheck auth doctor %s says more", caller, err, o.Resource))
		}
		who := settings.IdentityNamed(caller)
		tokens[who] = func() string { return session.Token(cmd.Context()) }
		credentials[who] = check.Credentials{Token: tokens[who]()}
	}
	for i := range p.legs {
		p.legs[i].options.Callers.Credentials, p.legs[i].options.Callers.Tokens = credentials, tokens
	}
	return nil
}
