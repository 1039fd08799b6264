package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bridgecheck/suites"
	"bridgecheck/suites/ledger"
	"bridgecheck/suites/mutants"
)

// clauseView is a clause as `checks --json` prints it.
type clauseView struct {
	ledger.Clause
	Checked bool `json:"checked"` // this build has a check for it
}

func newChecks() *cobra.Command {
	var asJSON bool
	list := func(cmd *cobra.Command, _ []string) error { return printLedger(cmd.OutOrStdout(), asJSON) }
	cmd := &cobra.Command{
		Use:   "checks",
		Short: "Show the contract: every clause and every capability",
		RunE:  list,
	}
	listCmd := &cobra.Command{Use: "list", Short: "List every clause and every capability", RunE: list}
	explain := &cobra.Command{
		Use:   "explain ID",
		Short: "Tell what one clause asks",
		Args:  oneArgument("the clause's id, for example list/names-unique"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return explainClause(cmd.OutOrStdout(), args[0], asJSON)
		},
	}
	cmd.AddCommand(listCmd, explain)
	for _, c := range []*cobra.Command{cmd, listCmd, explain} {
		addJSON(c, &asJSON)
	}
	return cmd
}

// clauses lists the whole ledger, each clause with whether it has a check.
func clauses() (*ledger.Ledger, []clauseView, error) {
	contract, err := ledger.Load()
	if err != nil {
		return nil, nil, err
	}
	checked, err := suites.Checked()
	if err != nil {
		return nil, nil, err
	}
	views := make([]clauseView, len(contract.Clauses))
	for i, c := range contract.Clauses {
		views[i] = clauseView{c, slices.Contains(checked, c)}
	}
	return contract, views, nil
}

func printLedger(out io.Writer, asJSON bool) error {
	contract, views, err := clauses()
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(out, map[string]any{"revision": contract.Revision, "clauses": views, "capabilities": contract.Capabilities})
	}
	w := newTable(out)
	w.row("CLAUSE", "LEVEL", "WIRE", "CAPABILITY", "CHECK")
	for _, v := range views {
		check := "yes"
		if !v.Checked {
			check = "not yet"
		}
		w.row(v.ID, string(v.Level), string(v.Wire), capability(v.Clause), check)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w.row("CAPABILITY", "MEANS")
	for _, c := range contract.Capabilities {
		w.row(c.Name, c.Text)
	}
	return w.Flush()
}

// capability is what a bridge must claim to be held to the clause.
func capability(c ledger.Clause) string { return cmp.Or(c.Needs, "tools") }

func explainClause(out io.Writer, id string, asJSON bool) error {
	contract, views, err := clauses()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(views, func(v clauseView) bool { return v.ID == id })
	if i < 0 {
		return usagef("there is no clause %q; the nearest is %s", id, contract.Nearest(id))
	}
	v := views[i]
	if asJSON {
		return writeJSON(out, v)
	}
	fmt.Fprintf(out, "%s  %s\n\n%s\n\n", v.ID, v.Level, v.Text)
	fmt.Fprintf(out, "why: %s\n", v.Why)
	for _, part := range []struct{ name, text string }{{"right", v.Right}, {"wrong", v.Wrong}, {"to mend it", v.Fix}} {
		if part.text != "" {
			fmt.Fprintf(out, "%s: %s\n", part.name, part.text)
		}
	}
	if killers := mutants.Killing(v.ID); len(killers) > 0 {
		fmt.Fprintf(out, "proved by the mutants: %s\n", strings.Join(killers, ", "))
	}
	fmt.Fprintln(out)
	w := newTable(out)
	w.row("source", v.From)
	w.row("applies to", "bridges that claim "+capability(v.Clause))
	w.row("seen from", map[ledger.Wire]string{
		ledger.Front: "the bridge's URL alone", ledger.Both: "the bridge and the site behind it (--exec or --mock-listen)",
	}[v.Wire])
	check := "this build has none yet"
	if v.Checked {
		check = "bridgecheck run --only " + v.ID
	}
	w.row("check", check)
	return w.Flush()
}
