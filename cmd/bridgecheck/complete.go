package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/surface"
	"github.com/bridgecheck/bridgecheck/mockdrupal/module"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// completion proposes words for a shell to complete what was typed; words may carry a description behind a tab.
type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// completeClauses proposes the clauses' ids for one argument.
func completeClauses(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	contract, err := contract.Load()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return clauseWords(contract), cobra.ShellCompDirectiveNoFileComp
}

// completeGlobs proposes areas and clauses for --only and --skip.
func completeGlobs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	contract, err := contract.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return append(contract.Areas(), clauseWords(contract)...), cobra.ShellCompDirectiveNoFileComp
}

// completeCapabilities proposes what may follow the last comma of --capabilities, a capability to claim or, behind a -,
// to take away.
func completeCapabilities(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	contract, err := contract.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	if strings.HasPrefix(typed[len(before):], "-") {
		before += "-"
	}
	given := strings.FieldsFunc(before, func(c rune) bool { return c == ',' })
	var words []string
	for _, c := range contract.Capabilities {
		switch {
		case slices.Contains(given, c.Name), slices.Contains(given, "-"+c.Name):
		case before == "":
			words = append(words, c.Name+"\t"+c.Text)
		default: // cobra's script for bash finds no word that has both a comma and a description
			words = append(words, before+c.Name)
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func clauseWords(contract *contract.Contract) []string {
	words := make([]string, len(contract.Clauses))
	for i, c := range contract.Clauses {
		words[i] = c.ID + "\t" + string(c.Level) + " " + c.Text
	}
	return words
}

// oneOf proposes fixed words.
func oneOf(words []string) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func mutantNames() []string {
	var names []string
	for _, m := range mutants.All() {
		names = append(names, m.Name)
	}
	return names
}

// completeMutants makes the mutants when they are asked for: no other command needs them.
func completeMutants(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return oneOf(mutantNames())(c, args, typed)
}

// addCompletions gives the flags of all commands below root their words. Flags that name files complete files anyway.
func addCompletions(root *cobra.Command) {
	for _, c := range []struct {
		command, flag string
		words         completion
	}{
		{"run", "only", completeGlobs},
		{"run", "skip", completeGlobs},
		{"run", "capabilities", completeCapabilities},
		{"report convert", "to", oneOf(format.Names())},
		{"selftest", "mutant", completeMutants},
		{"mock", "site", siteWords},
		{"tools diff", "format", oneOf(surface.Formats)},
		{"mock", "with-module", oneOf([]string{module.V13, module.V14, module.MCP})},
	} {
		cmd, _, err := root.Find(strings.Fields(c.command))
		if err == nil {
			err = cmd.RegisterFlagCompletionFunc(c.flag, c.words)
		}
		if err != nil {
			panic(err) // the table names a command or flag that is not there
		}
	}
}

// siteWords proposes the built-in sites, and files as the shell finds them.
func siteWords(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return fixtures.Names(), cobra.ShellCompDirectiveDefault
}
