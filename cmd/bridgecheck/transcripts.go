package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/mockdrupal/compare"
)

// verifyFlags are the flags of mock verify.
type verifyFlags struct {
	compare.VerifyOptions
	site, credentials string
	generate          int
	seed              uint64
	asJSON            bool
}

func newMockVerify() *cobra.Command {
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Compare the mock or a site with recordings, or a site with the mock",
		Example: `  bridgecheck mock verify --transcripts recordings
  bridgecheck mock verify --transcripts recordings --url https://example.org
  bridgecheck mock verify --url http://127.0.0.1:8888 --site default --generate 2000 --seed 1`,
		Long: `verify replays recordings of a real site against the mock, or against the site at --url.

With --generate it sends generated requests, valid, invalid and malformed ones, as each account of a
site file to the site at --url and to the mock of that site file, compares the responses byte for
byte, and shrinks each difference to the smallest request that shows it. The site must offer what
the site file says: see fixtures export --drupal-module. Its methods run.

All headers are compared but those that the report names. What differs between versions of Drupal
core is expected as the site's version has it.

The exit code is 1 when something differs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.verify(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Transcripts, "transcripts", "", "`directory` of recordings")
	flags.StringSliceVar(&f.Areas, "area", nil, "`name` of an area to compare; repeatable; default all")
	flags.StringVar(&f.URL, "url", "", "compare the site at this `URL` in place of the mock, or with --generate with the mock")
	flags.StringVar(&f.site, "site", "", "site `FILE|NAME` that the mock serves; default the one that was recorded, or with --generate default")
	flags.IntVar(&f.generate, "generate", 0, "send this `number` of generated requests to the site and to the mock")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that the generated requests depend on")
	flags.IntVar(&f.JSONRPC, "jsonrpc", 0, "`line` of the jsonrpc module that the mock is: 2, the default for recordings, or 3, that with --generate")
	flags.StringVar(&f.Drupal, "drupal", "", "`version` of the site's Drupal core, as mock --drupal has it; default the one that the site shows")
	addCredentials(cmd, &f.credentials)
	addJSON(cmd, &f.asJSON)
	cmd.MarkFlagsMutuallyExclusive("generate", "transcripts")
	cmd.MarkFlagsMutuallyExclusive("generate", "area")
	return cmd
}

// comparisonReport is what both kinds of comparison give.
type comparisonReport interface {
	Agrees() bool
	Write(io.Writer) error
}

// progressEvery is the time between two lines on how far a comparison is: a Drupal may take a second for each request.
const progressEvery = 5 * time.Second

// comparisonProgress prints how far a comparison is.
func comparisonProgress(out io.Writer) func(done, all, differences int) {
	began := time.Now()
	last := began
	return func(done, all, differences int) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			left := (now.Sub(began) / time.Duration(done) * time.Duration(all-done)).Round(time.Second)
			fmt.Fprintf(out, "%d of %d requests compared, %d differences so far, about %s to go\n", done, all, differences, left)
		}
	}
}

func (f *verifyFlags) verify(cmd *cobra.Command) error {
	generated := cmd.Flags().Changed("generate")
	needed, site := []string{"transcripts"}, f.site
	if generated {
		needed, site = []string{"url"}, cmp.Or(site, "default")
	}
	err := refuseMissing(cmd, needed...)
	if err != nil {
		return err
	}
	if site != "" {
		if f.Site, err = openSite(site); err != nil {
			return err
		}
	}
	if f.credentials != "" || f.URL != "" && !generated {
		if f.Credentials, err = openCredentials(f.credentials); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("jsonrpc") {
		if err := knownLine(f.JSONRPC); err != nil {
			return err
		}
	}
	f.Progress = comparisonProgress(cmd.ErrOrStderr())
	var report comparisonReport
	if generated {
		report, err = compare.Generate(cmd.Context(), compare.GenerateOptions{Site: f.Site, URL: f.URL, Credentials: f.Credentials,
			Requests: f.generate, Seed: f.seed, Drupal: f.Drupal, JSONRPC: f.JSONRPC, Progress: f.Progress})
	} else {
		report, err = compare.Verify(cmd.Context(), f.VerifyOptions)
	}
	var unreachable *compare.UnreachableError
	switch {
	case errors.As(err, &unreachable):
		return &engine.UnreachableError{URL: unreachable.URL, Reason: unreachable.Reason}
	case err != nil:
		return usageError(err)
	}
	if f.asJSON {
		err = writeJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.Write(cmd.OutOrStdout())
	}
	if err == nil && !report.Agrees() {
		return exitCode(1)
	}
	return err
}

func newMockRecord() *cobra.Command {
	var (
		o           compare.RecordOptions
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
			if err := compare.MakeRecordings(cmd.Context(), o); err != nil {
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

func openCredentials(file string) (compare.CredentialsOf, error) {
	if file == "" {
		return compare.EnvironmentCredentials(os.LookupEnv), nil
	}
	credentials, err := compare.FileCredentials(file)
	if err != nil {
		return nil, usageError(err)
	}
	return credentials, nil
}
