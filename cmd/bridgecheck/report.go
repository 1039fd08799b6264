package main

import (
	"bytes"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"bridgecheck/reports"
	"bridgecheck/suites"
)

func newReport() *cobra.Command {
	cmd := &cobra.Command{Use: "report", Short: "Work on report.json files"}
	cmd.AddCommand(newConvert(), &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of report.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(reports.Schema())
			return err
		},
	})
	return cmd
}

func newConvert() *cobra.Command {
	var to, output string
	var names []string
	for _, form := range reports.Forms() {
		names = append(names, form.Name)
	}
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a report.json in another form",
		Args:  oneArgument("a report.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			form, err := reports.FormNamed(to)
			if err != nil {
				return &suites.UsageError{Reason: err.Error()}
			}
			report, err := reports.ReadFile(args[0])
			if err != nil {
				return &suites.UsageError{Reason: err.Error()}
			}
			var written bytes.Buffer
			if err := form.Write(&written, report); err != nil {
				return err
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(written.Bytes())
				return err
			}
			if err := os.WriteFile(output, written.Bytes(), 0o644); err != nil {
				return usagef("%s cannot be written: %s; give another by --output", output, reason(err))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "markdown", "`form`: "+strings.Join(names, ", "))
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write in place of stdout")
	return cmd
}
