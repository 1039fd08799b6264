package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// releaseVersion and releaseCommit are those of a release: the linker sets them. packaging/release says how.
var releaseVersion, releaseCommit string

// thisTool is this binary as reports name it: a release, or the version and the commit that Go stamped into it.
func thisTool() reports.Tool {
	if releaseVersion != "" {
		return reports.Tool{Name: "bridgecheck", Version: releaseVersion, Commit: releaseCommit}
	}
	tool := reports.Tool{Name: "bridgecheck", Version: "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return tool
	}
	if info.Main.Version != "" {
		tool.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			tool.Commit = s.Value
		}
	}
	return tool
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and ledger revision",
		Example: `  bridgecheck version --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			contract, err := contract.Load()
			if err != nil {
				return err
			}
			tool, out := thisTool(), cmd.OutOrStdout()
			if asJSON {
				return writeJSON(out, map[string]string{
					"version": tool.Version, "commit": tool.Commit, "ledger": contract.Revision, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			commit := tool.Commit
			commit = cmp.Or(commit, "unknown")
			_, err = fmt.Fprintf(out, "bridgecheck %s\ncommit %s\nledger %s\n%s %s/%s\n", tool.Version, commit, contract.Revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

// addJSON declares --json, which makes stdout one JSON document.
func addJSON(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print one JSON document on stdout")
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(terminal.JSON(b.Bytes()))
	return err
}
