package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/mockdrupal/transcript"
)

func newMockVerify() *cobra.Command {
	var (
		o                 transcript.VerifyOptions
		site, credentials string
		asJSON            bool
	)
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the mock or a site with recordings of a real one; exit code 1 on a difference",
		Example: `  bridgecheck mock verify --transcripts recordings
  bridgecheck mock verify --transcripts recordings --url https://example.org`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := refuseMissing(cmd, "transcripts")
			if err != nil {
				return err
			}
			if site != "" {
				if o.Site, err = openSite(site); err != nil {
					return err
				}
			}
			if credentials != "" || o.URL != "" {
				if o.Credentials, err = openCredentials(credentials); err != nil {
					return err
				}
			}
			report, err := transcript.Verify(cmd.Context(), o)
			if err != nil {
				return usageError(err)
			}
			if asJSON {
				err = writeJSON(cmd.OutOrStdout(), report)
			} else {
				err = report.Write(cmd.OutOrStdout())
			}
			if err == nil && !report.Agrees() {
				return exitCode(1)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Transcripts, "transcripts", "", "`directory` of recordings")
	flags.StringSliceVar(&o.Areas, "area", nil, "`name` of an area to compare; repeatable; default all")
	flags.StringVar(&o.URL, "url", "", "compare the site at this `URL` in place of the mock")
	flags.StringVar(&site, "site", "", "site `FILE|NAME` that the mock serves; default the one that was recorded")
	addCredentials(cmd, &credentials)
	addJSON(cmd, &asJSON)
	return cmd
}

func newMockRecord() *cobra.Command {
	var (
		o           transcript.RecordOptions
		credentials string
	)
	cmd := &cobra.Command{
		Use:     "record",
		Short:   "Send a file of cases to a real site, and keep its responses as recordings",
		Example: `  bridgecheck mock record --url https://example.org --cases cases.jsonl --out recordings`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := refuseMissing(cmd, "url", "cases", "out")
			if err != nil {
				return err
			}
			if o.Credentials, err = openCredentials(credentials); err != nil {
				return err
			}
			recorded := 0
			o.Progress = func(done, _ int, _ string) { recorded = done }
			if err := transcript.MakeRecordings(cmd.Context(), o); err != nil {
				return usageError(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d responses recorded in %s\n", recorded, o.Out)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", "", "`URL` of the site")
	flags.StringVar(&o.Cases, "cases", "", "`file` of cases: records without a response, one per line")
	flags.StringVar(&o.Out, "out", "", "`directory` for the recordings, one file per area")
	addCredentials(cmd, &credentials)
	return cmd
}

func addCredentials(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "credentials", "", "JSON `file` of passwords and tokens by account; "+
		"default the environment: BRIDGECHECK_PASSWORD_ACCOUNT, BRIDGECHECK_TOKEN_ACCOUNT")
}

func openCredentials(file string) (transcript.CredentialsOf, error) {
	if file == "" {
		return transcript.EnvironmentCredentials(os.LookupEnv), nil
	}
	credentials, err := transcript.FileCredentials(file)
	if err != nil {
		return nil, usageError(err)
	}
	return credentials, nil
}
