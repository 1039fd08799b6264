package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/starter"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
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
				return usagef("there is no starter for %q; %s", args[0], suggest.Among(args[0], languages))
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

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellWord is a text as one word of a POSIX shell.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(terminal.Escape(text), "'", `'\''`) + "'"
}
