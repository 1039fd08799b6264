package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/login"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
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
secret of a client is in ` + settings.ClientSecretEnv + `.

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
			o.Show = func(address string) {
				cmd.PrintErrf("bridgecheck: log in at %s\n", terminal.Escape(address))
			}
			return showSteps(cmd, login.New(o).Diagnose(cmd.Context(), person || o.Device), asJSON)
		},
	}
	cmd.Flags().BoolVar(&person, "login", false, "log in, and try the layers after the registration, too")
	cmd.Flags().BoolVar(&o.Device, "device", false, "log in with a browser on another machine (RFC 8628)")
	cmd.Flags().StringVar(&o.ClientID, "client-id", "", "`id` of a client that is registered, or the address of its metadata")
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
	if code != exitOK {
		return exitCode(code)
	}
	return nil
}
