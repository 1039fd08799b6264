package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/starter"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// clauseView is a clause as `checks --json` prints it.
type clauseView struct {
	contract.Clause
	Cites   []contract.Citation `json:"cites"`   // Source, one by one
	Checked bool                `json:"checked"` // this build has a check for it
	Mutants []string            `json:"mutants"` // the broken bridges that prove the check
}

// ledgerForm is how `checks` shows the contract; all false: as a table.
type ledgerForm struct{ json, html, markdown, openAPI bool }

func newChecks() *cobra.Command {
	var form ledgerForm
	var output, version string
	var diff bool
	list := func(cmd *cobra.Command, args []string) error {
		if err := oneForm(cmd, "json", "html", "markdown", "openapi"); err != nil {
			return err
		}
		var written bytes.Buffer
		write := func() error { return writeLedger(&written, version, form) }
		if diff {
			write = func() error { return writeDiff(&written, args[0], args[1], form) }
		}
		if err := write(); err != nil {
			return err
		}
		return deliver(cmd, output, written.Bytes())
	}
	versions := func(cmd *cobra.Command, args []string) error {
		switch {
		case !diff:
			return onlyCommands(cmd, args)
		case len(args) != 2 || form.html || form.markdown || form.openAPI || version != "":
			return usagef("--diff takes two versions of the contract, for example --diff 1.0 draft, and --json at most")
		}
		return nil
	}
	cmd := &cobra.Command{
		Use:   "checks",
		Short: "Show the contract: every clause and every capability",
		Example: `  bridgecheck checks --html -o contract.html
  bridgecheck checks --diff 1.0 draft
  bridgecheck checks explain describe/unknown-404`,
		Args: versions,
		RunE: list,
	}
	listCmd := &cobra.Command{Use: "list", Short: "List every clause and every capability", Example: "  bridgecheck checks list --json", RunE: list}
	var reportDir string
	explain := &cobra.Command{
		Use:               "explain ID",
		Short:             "Show what one clause requires, why, and how to fix a bridge that breaks it",
		Example:           `  bridgecheck checks explain describe/unknown-404`,
		Args:              oneArgument("the clause's id, for example list/names-unique"),
		ValidArgsFunction: completeClauses,
		RunE: func(cmd *cobra.Command, args []string) error {
			return explainClause(cmd, args[0], reportDir, form.json)
		},
	}
	explain.Flags().StringVar(&reportDir, "report-dir", "bridgecheck-report", "`directory` of a report that has clauses of a program's own")
	cmd.AddCommand(listCmd, explain)
	cmd.Flags().BoolVar(&diff, "diff", false, "the clauses that differ between two versions of the contract: checks --diff 1.0 draft")
	for _, c := range []*cobra.Command{cmd, listCmd, explain} {
		addJSON(c, &form.json)
	}
	for _, c := range []*cobra.Command{cmd, listCmd} {
		c.Flags().BoolVar(&form.html, "html", false, "the whole contract as one page to browse, with examples, reasons and fixes")
		c.Flags().BoolVar(&form.markdown, "markdown", false, "the same as Markdown")
		c.Flags().BoolVar(&form.openAPI, "openapi", false, "the three endpoints as an OpenAPI 3.1 document, as docs/openapi.yaml has it")
		c.Flags().StringVar(&version, "contract", "", "`version` of the contract (default the latest released; draft: also clauses that are not released)")
		addOutput(c, &output)
	}
	return cmd
}

// clauses lists the clauses of a version of the contract, each with what this build has for it.
func clauses(version string) (*contract.Contract, []clauseView, error) {
	all, err := contract.Load()
	if err != nil {
		return nil, nil, err
	}
	contract, err := all.At(version)
	if err != nil {
		return nil, nil, usageError(err)
	}
	checked, err := engine.Checked()
	if err != nil {
		return nil, nil, err
	}
	views := make([]clauseView, len(contract.Clauses))
	for i, c := range contract.Clauses {
		views[i] = clauseView{c, contract.Cites(c), slices.Contains(checked, c), mutants.Killing(c.ID)}
	}
	return contract, views, nil
}

// writeDiff writes the clauses that two versions of the contract do not have in common.
func writeDiff(out io.Writer, from, to string, form ledgerForm) error {
	all, err := contract.Load()
	if err != nil {
		return err
	}
	changes, err := all.Diff(from, to)
	if err != nil {
		return usageError(err)
	}
	if form.json {
		return writeJSON(out, changes)
	}
	if len(changes) == 0 {
		fmt.Fprintf(out, "no difference between %s and %s; the versions are %s\n", from, to, strings.Join(all.Versions(), ", "))
		return nil
	}
	w := newTable(out)
	w.row("CLAUSE", strings.ToUpper(from), strings.ToUpper(to))
	for _, c := range changes {
		w.row(c.ID, cmp.Or(string(c.From), "-"), cmp.Or(string(c.To), "-"))
	}
	return w.Flush()
}

func writeLedger(out io.Writer, version string, form ledgerForm) error {
	contract, views, err := clauses(version)
	switch {
	case err != nil:
		return err
	case form.json:
		return writeJSON(out, map[string]any{"version": contract.Version, "revision": contract.Revision, "clauses": views, "capabilities": contract.Capabilities})
	case form.markdown:
		_, err := io.WriteString(out, contract.Markdown())
		return err
	case form.openAPI:
		_, err := io.WriteString(out, contract.OpenAPI())
		return err
	case form.html:
		docs := make([]format.ClauseDoc, len(views))
		for i, v := range views {
			docs[i] = v.doc()
		}
		return format.WriteClauses(out, contract.Version+", "+contract.Revision, contract.Guide(), docs)
	}
	w := newTable(out)
	w.row("CLAUSE", "LEVEL", "SIDE", "CAPABILITY", "CHECK")
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

// capability is what a bridge must claim for the clause to apply.
func capability(c contract.Clause) string { return cmp.Or(c.Needs, "tools") }

// doc is the clause as a reader sees it.
func (v clauseView) doc() format.ClauseDoc {
	seenOn := "the bridge's URL alone"
	if v.Wire == contract.Both {
		seenOn = "the bridge and the site behind it (--exec, --mock-listen or --drupal-proxy)"
	}
	sources := make([]format.Link, len(v.Cites))
	for i, cite := range v.Cites {
		sources[i] = format.Link(cite)
	}
	return format.ClauseDoc{
		ID: v.ID, Level: reports.Level(v.Level), Area: v.Area, Text: v.Text, Source: v.Source, Sources: sources, Capability: capability(v.Clause), Wire: seenOn,
		Why: v.Why, Remedy: v.Fix.String(), Right: v.Right, Wrong: v.Wrong, Mutants: v.Mutants, Unchecked: !v.Checked,
	}
}

// reportedClause is a clause that a program has added to those of the contract, as its report has it.
func reportedClause(dir, id string) (clauseView, bool) {
	report, err := reports.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return clauseView{}, false
	}
	r, ok := report.Result(id)
	if !ok {
		return clauseView{}, false
	}
	clause := contract.Clause{ID: r.ID, Area: r.Area, Level: contract.Level(r.Level), Wire: contract.Wire(r.Wire), Needs: r.Capability,
		Text: r.Text, Source: r.Source,
		Reason: contract.Reason{Why: r.Why, Fix: contract.Fix{Any: r.Remedy}}}
	return clauseView{clause, []contract.Citation{{Text: r.Source}}, true, nil}, true
}

func explainClause(cmd *cobra.Command, id, reportDir string, asJSON bool) error {
	contract, views, err := clauses(contract.Draft)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(views, func(v clauseView) bool { return v.ID == id })
	var view clauseView
	if i >= 0 {
		view = views[i]
	} else if own, ok := reportedClause(reportDir, id); ok {
		view = own
	} else {
		if area, err := contract.Match(id); err == nil && len(area) > 0 {
			return usagef("%q is %d clauses: name one of them: %s", id, len(area), strings.Join(area, ", "))
		}
		return usagef("there is no clause %q, and no report with one of a program's own in %s (--report-dir); %s",
			id, reportDir, suggest.Or(id, contract.IDs(), "`bridgecheck checks` lists all"))
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), view)
	}
	c := console(cmd.OutOrStdout())
	if _, err := os.Stat(starter.Config); err == nil {
		c.Again = program + " run --config " + starter.Config // else it is the reference bridge that is tested
	}
	return c.Clause(view.doc())
}

// console fits one to out: colours and width on a terminal, plain text elsewhere.
func console(out io.Writer) *format.Console {
	c := &format.Console{Out: out}
	if file, ok := out.(*os.File); ok {
		c = format.NewConsole(file, os.Getenv)
	}
	c.Program = program
	return c
}
