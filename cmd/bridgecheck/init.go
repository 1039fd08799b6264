package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/starter"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/suites/k6"
)

func newInit() *cobra.Command {
	languages := starter.Languages()
	return &cobra.Command{
		Use:   "init " + strings.Join(languages, "|") + " [DIR]",
		Short: "Write a small conformant bridge to start from",
		Long: `init writes a bridge that keeps the contract, in the language that you choose, with its own tests, a
bridgecheck.yaml that says what it claims, and a workflow for GitHub Actions. It needs nothing but
the language's standard library. DIR is the working directory unless it is given; a file that exists
is not overwritten, and then nothing is written.`,
		Example: `  bridgecheck init node my-bridge
  bridgecheck init node              in the working directory`,
		ValidArgs: languages,
		Args:      someArguments(1, 2, "a language ("+strings.Join(languages, ", ")+") and a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, ok := starter.Find(args[0])
			if !ok {
				return usagef("there is no starter for %q; did you mean %s? The languages are %s",
					args[0], suggest.Nearest(args[0], languages), strings.Join(languages, ", "))
			}
			dir := slices.Concat(args[1:], []string{"."})[0]
			names, err := chosen.Write(dir)
			if exists := (*starter.ExistsError)(nil); errors.As(err, &exists) {
				return usagef("%v; choose another directory", err)
			}
			if err != nil {
				return usagef("the starter cannot be written: %v", err)
			}
			enter := ""
			if dir != "." {
				enter = "  cd " + shellWord(dir) + "\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d files are in %s; README.md says what each holds. Next:\n\n%s  %s\n  %s\n",
				len(names), terminal.Escape(dir), enter, chosen.Test, starter.Run)
			return err
		},
	}
}

// newLoad writes load tests for engines of others: bridgecheck has none.
func newLoad() *cobra.Command {
	cmd := &cobra.Command{Use: "load", Short: "Write a load test of a bridge for k6", Example: "  bridgecheck load export --k6 --config bridgecheck.yaml load.js"}
	var forK6 bool
	var address, configuration string
	var seed uint64
	export := &cobra.Command{
		Use:   "export --k6 [FILE]",
		Short: "Write a k6 script with calls that the bridge serves",
		Long: `export writes a script for k6 (https://k6.io) with calls of a running bridge: the invocations of the
configuration, and with generated arguments each tool that changes nothing (readOnlyHint), as each
identity of the configuration; without one, as the anonymous caller. It sends each generated call
once, and leaves out what the bridge does not serve. The script has thresholds, and no secret: it
names the environment variables that hold them. "RATE=200 DURATION=5m k6 run FILE" runs it.`,
		Example: `  bridgecheck load export --k6 --config bridgecheck.yaml load.js`,
		Args:    someArguments(0, 1, "a file to write, or none for stdout"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !forK6 {
				return usagef("for which engine? give --k6")
			}
			script, err := exportLoad(cmd, address, configuration, seed)
			if err != nil {
				return err
			}
			return deliver(cmd, slices.Concat(args, []string{""})[0], script)
		},
	}
	export.Flags().BoolVar(&forK6, "k6", false, "for k6")
	export.Flags().StringVar(&address, "url", "", "base `URL` of the bridge; overrides that of the configuration")
	export.Flags().StringVar(&configuration, "config", "", "configuration `file` of run: the bridge, its identities and invocations")
	export.Flags().Uint64Var(&seed, "seed", 1, "seed of the generated arguments")
	cmd.AddCommand(export)
	return cmd
}

func exportLoad(cmd *cobra.Command, address, configuration string, seed uint64) (script []byte, err error) {
	file := &settings.File{}
	if configuration != "" {
		if file, err = settings.Load(configuration); err != nil {
			return nil, usageError(err)
		}
	}
	base, err := engine.BaseURL(cmp.Or(address, file.URL))
	switch {
	case cmp.Or(address, file.URL) == "":
		return nil, usagef("which bridge? give --url, or --config with the key url")
	case err != nil:
		return nil, err
	case base.User != nil:
		return nil, usagef("the credentials in the URL would be in the script: put them into --config, as environment variables")
	}
	file.URL = base.String()
	o, err := file.Options(cmd.Context(), engine.Options{})
	defer func() { // of what logged in for the calls that were tried
		if ended := file.End(context.WithoutCancel(cmd.Context()), file.Sessions()...); err == nil {
			err = ended
		}
	}()
	if err != nil {
		return nil, usageError(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = o.Connection.TLS
	if o.Connection.Proxy != nil {
		transport.Proxy = o.Connection.Proxy
	}
	found, left, err := k6.Collect(cmd.Context(), k6.Options{URL: file.URL, Client: &http.Client{Transport: transport, Timeout: cmp.Or(o.Connection.Timeout, loadTimeout)}, Run: o, Seed: seed}, k6.Callers(file))
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		cmd.PrintErrf("bridgecheck: left out, as the bridge does not serve generated arguments: %s\n", terminal.Escape(strings.Join(left, ", ")))
	}
	if len(found.Calls) == 0 {
		return nil, usagef("no call is known to change nothing: no tool has readOnlyHint, so name calls as `invocations` in --config")
	}
	var written bytes.Buffer
	err = found.Write(&written)
	return written.Bytes(), err
}

const loadTimeout = 10 * time.Second // of a call that is tried

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellWord is a text as one word of a POSIX shell.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(terminal.Escape(text), "'", `'\''`) + "'"
}
