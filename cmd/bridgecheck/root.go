package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// The exit codes that scripts rely on. A run with a verdict ends with the code of its report: 0, 1 or 4.
const (
	exitOK          = 0
	exitUsage       = 2 // the command line, the configuration, or what they name is wrong
	exitUnreachable = 3 // the target cannot be reached, or never got ready
	exitNoVerdict   = 4 // the harness could not do its work
)

// exitCode ends a command that has said all that it had to say.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// endWith is the error that ends the program with an exit code; nil for exitOK.
func endWith(code int) error {
	if code == exitOK {
		return nil
	}
	return exitCode(code)
}

// execute runs one command line and returns its exit code. A failure is one sentence on stderr.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var (
		done        exitCode
		usage       *engine.UsageError
		unreachable *engine.UnreachableError
		notReady    *notReadyError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &done):
		return int(done)
	}
	fmt.Fprintf(stderr, "bridgecheck: %s\n", terminal.Escape(err.Error()))
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &unreachable) && strings.HasPrefix(unreachable.Reason.Error(), "the machine"):
		return exitNoVerdict
	case errors.As(err, &unreachable), errors.As(err, &notReady):
		return exitUnreachable
	}
	return exitNoVerdict
}

func usagef(format string, args ...any) error {
	return &engine.UsageError{Reason: fmt.Sprintf(format, args...)}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "bridgecheck",
		Short: "Test a bridge between Drupal and MCP against the contract",
		Long: `bridgecheck tests a bridge between Drupal's JSON-RPC methods and MCP tools against the contract,
and reports clause by clause whether it conforms.

Exit codes: 0 conformant · 1 not conformant · 2 wrong usage or configuration ·
3 the target cannot be reached · 4 the run gave no verdict.`,
		Example: `  bridgecheck run --exec 'node bridge.js'
  bridgecheck init node my-bridge
  bridgecheck checks explain describe/unknown-404`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRun(), newChecks(), newMock(), newTools(), newConsole(), newAuth(), newBridge(), newHealthy(), newFixtures(), newInit(), newReport(), newReplay(), newSelftest(), newMan(), newVersion())
	root.SetFlagErrorFunc(flagError)
	strictArguments(root)
	addCompletions(root)
	fitHelp(root)
	return root
}

// onlyCommands refuses arguments of a group of commands: they are mistyped names.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return usagef("%s has no command %q; %s", cmd.CommandPath(), args[0], suggest.Among(args[0], names))
}

// strictArguments makes every command refuse arguments that it does not take, and groups name their nearest command.
func strictArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		strictArguments(sub)
	}
	if cmd.HasSubCommands() {
		if cmd.Args == nil {
			cmd.Args = onlyCommands
		}
		if cmd.RunE == nil {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		return
	}
	if cmd.Args == nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usagef("%s takes no arguments, got %q: see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
		}
	}
}

// oneArgument is for commands that take exactly one, called what.
func oneArgument(what string) cobra.PositionalArgs { return someArguments(1, 1, what) }

// someArguments is for commands that take from least to most arguments, called what; most -1 is any number.
func someArguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usagef("%s takes %s; got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// example is what a flag's value looks like.
func example(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "duration":
		return "a time with its unit, for example 10s, 250ms or 5m"
	case "int", "int64":
		return "a whole number"
	case "bool":
		return "true or false, or the flag alone"
	}
	return "a " + flag.Value.Type()
}

// flagError says in a sentence what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		return usagef("--%s is %q: give %s", invalid.GetFlag().Name, invalid.GetValue(), example(invalid.GetFlag()))
	case !errors.As(err, &unknown):
		return &engine.UsageError{Reason: err.Error()}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	name, dashes := strings.TrimLeft(unknown.GetSpecifiedName(), "-"), "--"
	if word, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "="); word != "" { // one dash, as Go's own programs take their flags
		name, dashes = word, "-"
	}
	return usagef("%s has no flag %s%s; %s", cmd.CommandPath(), dashes, name, suggest.Or("--"+name, names, "see "+cmd.CommandPath()+" --help"))
}
