package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table aligns columns on stdout.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer) table { return table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

func (t table) row(cells ...string) { fmt.Fprintln(t.Writer, strings.Join(cells, "\t")) }
