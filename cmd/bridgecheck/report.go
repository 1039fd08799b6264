package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/machine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/reports/serve"
)

func newReport() *cobra.Command {
	cmd := &cobra.Command{Use: "report", Short: "Work on report.json files: convert, diff, merge, verify, serve",
		Example: "  bridgecheck report diff old/report.json bridgecheck-report"}
	cmd.AddCommand(newConvert(), newDiff(), newMerge(), newVerify(), newServe(), &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of report.json",
		Example: `  bridgecheck report schema`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(reports.Schema())
			return err
		},
	})
	return cmd
}

// readReport reads a report.json, or the one in a report directory.
func readReport(path string) (*reports.Report, error) {
	report, err := reports.ReadFile(path)
	if err != nil {
		return nil, usageError(err)
	}
	return report, nil
}

func newConvert() *cobra.Command {
	var to, previous, output string
	cmd := &cobra.Command{
		Use:     "convert REPORT",
		Short:   "Write a report in another format",
		Example: `  bridgecheck report convert bridgecheck-report --to junit -o junit.xml`,
		Args:    oneArgument("a report.json or a directory with one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := readReport(args[0])
			if err != nil {
				return err
			}
			if previous != "" {
				earlier, err := readReport(previous)
				if err != nil {
					return err
				}
				report.Since = reports.Compare(earlier, report)
			}
			f, err := format.Named(to)
			if err != nil {
				return usageError(err)
			}
			var written bytes.Buffer
			if err := f.Write(&written, report); err != nil {
				return err
			}
			data := written.Bytes()
			if output == "" && to == "json" { // a terminal or a log
				data = terminal.JSON(data)
			}
			return deliver(cmd, output, data)
		},
	}
	cmd.Flags().StringVar(&to, "to", "markdown", "`format`: "+strings.Join(format.Names(), ", "))
	cmd.Flags().StringVar(&previous, "previous", "", "earlier `report.json`; the differences to it are shown, too")
	addOutput(cmd, &output)
	return cmd
}

func newDiff() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "diff OLD NEW",
		Short:   "Show what changed between two reports; exit code 1 on a regression",
		Example: `  bridgecheck report diff old/report.json bridgecheck-report`,
		Args:    someArguments(2, 2, "two reports, the older first"),
		RunE: func(cmd *cobra.Command, args []string) error {
			older, err := readReport(args[0])
			if err != nil {
				return err
			}
			newer, err := readReport(args[1])
			if err != nil {
				return err
			}
			comparison := reports.Compare(older, newer)
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), comparison)
			} else {
				err = comparison.WriteText(cmd.OutOrStdout())
			}
			if err != nil {
				return err
			}
			return endWith(comparison.ExitCode())
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

func newMerge() *cobra.Command {
	var asJSON, asHTML, verbose bool
	var output, reportDir, baseline string
	cmd := &cobra.Command{
		Use:   "merge REPORT…",
		Short: "Merge the shards of a run, and show several bridges side by side",
		Long: `merge makes one report of the directories of all shards of a run, prints its summary, and ends
with the exit code that the run would have had without shards. Of other reports it shows the
bridges side by side.`,
		Example: `  bridgecheck report merge shard-1 shard-2 shard-3 --report-dir bridgecheck-report
  bridgecheck report merge node/report.json php/report.json --html -o bridges.html`,
		Args: someArguments(1, -1, "one report or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneForm(cmd, "json", "html"); err != nil {
				return err
			}
			shards, err := readShards(args)
			switch {
			case err != nil:
				return err
			case shards != nil:
				return mergeShards(cmd, shards, reportDir, baseline, &runFlags{Values: settings.Values{Command: settings.Command{JSON: asJSON, Verbose: verbose}}}, asHTML || output != "")
			case reportDir != "" || baseline != "":
				return usagef("--report-dir and --baseline are for the shards of one run: %s holds none", args[0])
			}
			var all []*reports.Report
			for _, path := range args {
				report, err := readReport(path)
				if err != nil {
					return err
				}
				if shard, ok := report.Settings["shard"]; ok {
					return usagef("%s is the report of shard %v: give the directories of all shards, which hold %s", path, shard, engine.ShardFile)
				}
				all = append(all, report)
			}
			merged, err := reports.MergeShards(all)
			if err != nil {
				return usageError(err)
			}
			table := format.Tabulate(merged)
			var written bytes.Buffer
			switch {
			case asJSON && len(merged) == 1:
				err = reports.WriteJSON(&written, merged[0])
			case asJSON:
				err = writeJSON(&written, table)
			case asHTML:
				err = table.WriteHTML(&written)
			default:
				err = table.WriteMarkdown(&written)
			}
			if err != nil {
				return err
			}
			data := written.Bytes()
			if output == "" && asJSON {
				data = terminal.JSON(data)
			}
			return deliver(cmd, output, data)
		},
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "of shards: print every failure with its details, as run --verbose")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document: the report of one bridge, the table of several")
	cmd.Flags().BoolVar(&asHTML, "html", false, "one page, of several bridges")
	cmd.Flags().StringVar(&reportDir, "report-dir", "", "of shards: `directory` for the report in every format")
	cmd.Flags().StringVar(&baseline, "baseline", "", "of shards: `file` of known failures, as that of run")
	addOutput(cmd, &output)
	return cmd
}

// readShards reads the shards in the directories; nil: there is none. All are shards, or none is.
func readShards(dirs []string) ([]*engine.Shard, error) {
	var shards []*engine.Shard
	other := ""
	for _, dir := range dirs {
		dir = strings.TrimSuffix(dir, engine.ShardFile)
		shard, err := engine.ReadShard(cmp.Or(dir, "."))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			other = dir
		case err != nil:
			return nil, usageError(err)
		default:
			shards = append(shards, shard)
		}
	}
	if len(shards) > 0 && other != "" {
		return nil, usagef("%s holds no %s, and others do: give the directories of all shards of one run", other, engine.ShardFile)
	}
	return shards, nil
}

// mergeShards makes the report that the run would have made without shards, and ends as that would have.
func mergeShards(cmd *cobra.Command, shards []*engine.Shard, dir, known string, f *runFlags, otherForm bool) error {
	if otherForm {
		return usagef("--html and --output are for several bridges: --report-dir has the report of the shards in every format")
	}
	report, err := engine.JoinShards(shards)
	if err != nil {
		return usageError(err)
	}
	if known != "" {
		file, err := readBaseline(known)
		if err != nil {
			return usageError(err)
		}
		file.Apply(report, time.Now())
	}
	var unwritten error
	if dir != "" {
		if err := prepare(dir, cmd.ErrOrStderr()); err != nil {
			return err
		}
		if err := removeReport(dir); err != nil {
			return err
		}
		unwritten = format.WriteAll(report, dir)
	}
	if err := f.show(cmd, report, dir, unwritten); err != nil {
		return err
	}
	return endWith(report.ExitCode())
}

// oneForm refuses several of the flags that choose the format of a command's output; it may lack some of them.
func oneForm(cmd *cobra.Command, names ...string) error {
	var given []string
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "true" {
			given = append(given, "--"+name)
		}
	}
	if len(given) > 1 {
		return usagef("%s are formats of one output: give one of them", strings.Join(given, " and "))
	}
	return nil
}

func newVerify() *cobra.Command {
	return &cobra.Command{
		Use:     "verify DIR",
		Short:   "Check that all files of a report directory agree; exit code 1 when one does not",
		Example: `  bridgecheck report verify bridgecheck-report`,
		Args:    oneArgument("a report directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wrong, err := format.Verify(args[0])
			if err != nil {
				return usageError(err)
			}
			for _, mismatch := range wrong {
				fmt.Fprintln(cmd.OutOrStdout(), terminal.Escape(mismatch.String()))
			}
			if len(wrong) > 0 {
				return exitCode(1)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "all files in %s agree\n", args[0])
			return err
		},
	}
}

func newServe() *cobra.Command {
	o := serve.Options{}
	cmd := &cobra.Command{
		Use:     "serve DIR",
		Short:   "Show a folder of reports as local pages: bridges side by side, and over time",
		Example: `  bridgecheck report serve reports --listen 127.0.0.1:8082`,
		Args:    oneArgument("a folder of reports"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = args[0]
			o.Ready = func(address string) { fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", address) }
			if err := serve.Run(cmd.Context(), o); err != nil {
				return usageError(err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "127.0.0.1:8082", "`HOST:PORT` to listen on; port 0 takes a free one")
	return cmd
}

// addOutput declares --output, which deliver writes to.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "`file` to write in place of stdout")
}

func deliver(cmd *cobra.Command, output string, data []byte) error {
	if output == "" {
		_, err := cmd.OutOrStdout().Write(data)
		return err
	}
	if err := os.WriteFile(output, data, 0o644); err != nil {
		return usagef("%s cannot be written: %s; give another by --output", output, reason(err))
	}
	return nil
}

// cannotListen is the error for an address of a flag that is taken, or is none.
func cannotListen(flag, addr string, err error) error {
	if _, port, _ := net.SplitHostPort(addr); port == "0" { // nobody chose it
		return fmt.Errorf("cannot listen at %s: %s", addr, cmp.Or(machine.Fault(err), machine.NoPort))
	}
	return usagef("cannot listen at %s: %s; give another HOST:PORT by --%s", addr, reason(err), flag)
}

// reason is the innermost error's text, without the address and the system call around it, which the caller names.
func reason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// sayListening prints the address that a serving command got.
func sayListening(cmd *cobra.Command, url string) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", reachable(url))
	return err
}

// reachable is how a client on this machine reaches a server that may listen on every address.
func reachable(base string) string {
	scheme, addr, _ := strings.Cut(base, "://")
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return base
	}
	return scheme + "://" + net.JoinHostPort("127.0.0.1", port)
}

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
