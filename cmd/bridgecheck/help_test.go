package main

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/shlex"
	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// everyCommand calls visit with each command but cobra's help.
func everyCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "help" {
			everyCommand(sub, visit)
		}
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Short + "\n" + cmd.UsageString()) {
			n := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
			must.Expect(t, n <= helpWidth, "%s --help has a line of %d characters, at most %d fit: %s", cmd.CommandPath(), n, helpWidth, line)
		}
	})
}

// Every command has examples, and each is a command line that it takes.
func TestExamplesAreCommands(t *testing.T) {
	remark := regexp.MustCompile(`\s{3,}.*$`)
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s --help has no Examples: add some to the command", cmd.CommandPath())
			return
		}
		for line := range strings.Lines(cmd.Example) {
			text := remark.ReplaceAllString(strings.TrimSpace(line), "")
			text = strings.TrimSuffix(strings.TrimPrefix(text, "source <("), ")")
			words, err := shlex.Split(text)
			if err != nil || len(words) < 2 || words[0] != "bridgecheck" {
				t.Errorf("%s: the example %q is no command line of bridgecheck: %v", cmd.CommandPath(), line, err)
				continue
			}
			root := newRoot() // flags keep what was parsed
			found, rest, err := root.Find(words[1:])
			switch {
			case err != nil:
				t.Errorf("%s: the example %q: %v", cmd.CommandPath(), line, err)
				continue
			case !strings.HasPrefix(found.CommandPath(), cmd.CommandPath()):
				t.Errorf("%s: the example %q is of another command", cmd.CommandPath(), line)
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: the example %q: %v", cmd.CommandPath(), line, err)
				continue
			}
			err = found.ValidateArgs(found.Flags().Args())
			must.Expect(t, err == nil, "%s: the example %q: %v", cmd.CommandPath(), line, err)
		}
	})
}

// Help shows what a setting of the reference bridge takes.
func TestSettingsHaveTypes(t *testing.T) {
	flags := newBridge().Flags()
	for name, want := range map[string]string{"listen": "string", "page-size": "int", "discovery-ttl": "duration", "drupal": "string"} {
		flag := flags.Lookup(name)
		must.Expect(t, flag != nil && flag.Value.Type() == want, "--%s: want the type %s, got %+v", name, want, flag)
	}
}
