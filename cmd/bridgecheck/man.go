package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a directory",
		Args:  oneArgument("a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return usagef("the directory %s cannot be written: %s", dir, reason(err))
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, &doc.GenManHeader{Title: "BRIDGECHECK", Section: "1", Source: "bridgecheck"}, dir); err != nil {
				return usagef("the manual pages cannot be written: %s", reason(err))
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "the manual pages are in %s\n", dir)
			return err
		},
	}
}
