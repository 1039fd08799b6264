package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// openSite gives the site of a file or folder, or a built-in one by its name; a file goes first.
func openSite(name string) (*fixtures.Site, error) {
	_, err := os.Stat(name)
	var site *fixtures.Site
	switch {
	case err == nil, strings.ContainsAny(name, `/\.`):
		site, err = fixtures.Load(name)
	default:
		site, err = fixtures.Builtin(name)
	}
	if err != nil {
		return nil, usageError(err)
	}
	return site, nil
}

func newFixtures() *cobra.Command {
	cmd := &cobra.Command{Use: "fixtures", Short: "List, validate and export sites", Example: "  bridgecheck fixtures export default -o site.yaml"}
	cmd.AddCommand(
		&cobra.Command{
			Use:     "list",
			Short:   "List the built-in sites",
			Example: `  bridgecheck fixtures list`,
			RunE: func(cmd *cobra.Command, _ []string) error {
				for _, name := range fixtures.Names() {
					fmt.Fprintln(cmd.OutOrStdout(), name)
				}
				return nil
			},
		},
		&cobra.Command{
			Use:     "validate FILE|NAME",
			Short:   "Check a site file, and say what is wrong and where",
			Example: `  bridgecheck fixtures validate site.yaml`,
			Args:    oneArgument("a site file or the name of a built-in site"),
			RunE: func(cmd *cobra.Command, args []string) error {
				site, err := openSite(args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %d users, %d methods, %d of them tools\n",
					args[0], len(site.Users), len(site.Methods), len(site.Exposed()))
				return err
			},
		},
		newExport(),
	)
	return cmd
}

func newExport() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "export FILE|NAME",
		Short:   "Print a site as YAML, to start a site of your own from",
		Example: `  bridgecheck fixtures export default -o site.yaml`,
		Args:    oneArgument("a site file or the name of a built-in site"),
		RunE: func(cmd *cobra.Command, args []string) error {
			site, err := openSite(args[0])
			if err != nil {
				return err
			}
			data, err := site.YAML()
			if err != nil {
				return err
			}
			return deliver(cmd, output, data)
		},
	}
	addOutput(cmd, &output)
	return cmd
}
