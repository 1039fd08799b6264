package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// table aligns columns on stdout.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer) table { return table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

// row writes one line; a cell's text comes from a site file or a bridge as well.
func (t table) row(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		shown[i] = terminal.Escape(strings.ReplaceAll(cell, "\t", " "))
	}
	fmt.Fprintln(t.Writer, strings.Join(shown, "\t"))
}
