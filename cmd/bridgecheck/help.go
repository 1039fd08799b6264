package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// helpWidth is how wide help is at most, in characters.
const helpWidth = 100

// fitHelp wraps the texts of flags in the help of all commands, and gives cobra's own commands examples.
func fitHelp(root *cobra.Command) {
	const flags = ".LocalFlags.FlagUsages"
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), flags, fmt.Sprintf("%sWrapped %d", flags, helpWidth)))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Example = "  source <(bridgecheck completion bash)"
		for _, shell := range cmd.Commands() {
			shell.Example = "  bridgecheck completion " + shell.Name()
		}
	}
}

// keepBlocks makes the indented blocks in the descriptions below cmd code, which a manual page shows line by line. Their
// lines would be filled into one paragraph.
func keepBlocks(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		keepBlocks(sub)
	}
	const margin = "    " // makes code of a paragraph
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "  ") {
			continue
		}
		lines[i] = margin + line
		if i > 0 && lines[i-1] != "" && !strings.HasPrefix(lines[i-1], margin) {
			lines[i] = "\n" + lines[i]
		}
	}
	cmd.Long = strings.Join(lines, "\n")
}

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages of all commands into a directory",
		Example: `  bridgecheck man ~/.local/share/man/man1`,
		Args:    oneArgument("a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return usagef("the directory %s cannot be written: %s", dir, reason(err))
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			keepBlocks(root)
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "BRIDGECHECK", Section: "1", Source: "bridgecheck"}, dir); err != nil {
				return usagef("the manual pages cannot be written: %s", reason(err))
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "the manual pages are in %s\n", dir)
			return err
		},
	}
}
