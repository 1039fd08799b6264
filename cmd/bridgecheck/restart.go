package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/config"
	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// The settings in report.json that say how a bridge of --exec was started.
const (
	execSetting = "exec" // the command
	envSetting  = "env"  // the names of the variables that it received, never their values
	siteSetting = "site" // the built-in site of the mock
)

// mockSite is the built-in site that a run serves behind a bridge.
const mockSite = "default"

// noteCommand notes in the report how the bridge of --exec was started, without secrets.
func (p *plan) noteCommand(report *reports.Report, o suites.Options) {
	if p.exec == "" || p.proxy.listen != "" {
		return
	}
	report.Settings[execSetting] = o.Redactor().Text(p.exec)
	report.Settings[siteSetting] = mockSite
	if len(p.env) > 0 {
		report.Settings[envSetting] = p.env
	}
}

// restart are the flags of replay that start a bridge.
type restart struct {
	command string
	env     []string
	yes     bool
}

// replay sends the request of a failure again: to the target of the report, or to a bridge that it starts.
func (r *restart) replay(cmd *cobra.Command, o suites.ReplayOptions) (*suites.Replayed, error) {
	noted, _ := o.Report.Settings[execSetting].(string)
	changed := cmd.Flags().Changed
	switch {
	case changed("exec") && r.command == "":
		return nil, usagef("--exec is empty: give a value, or leave the flag out")
	case r.yes && changed("exec"):
		return nil, usagef("--yes starts the command of the report, --exec another: give one of the two")
	case o.To != "" && (r.yes || changed("exec")):
		return nil, usagef("--to names a bridge that is up, --exec and --yes start one: give one of the two")
	case r.yes && noted == "":
		return nil, usagef("--yes: the report holds no command: give one by --exec")
	case len(r.env) > 0 && !changed("exec"):
		return nil, usagef("--env is for a bridge that --exec starts: give --exec too")
	case o.To != "" || noted == "" && !changed("exec"):
		return suites.Replay(cmd.Context(), o)
	}
	if err := suites.Restageable(o.Report, o.Clause); err != nil {
		return nil, err
	}
	if !r.yes && !changed("exec") {
		variables := ""
		if names := notedNames(o.Report); len(names) > 0 {
			variables = fmt.Sprintf(" with the variables %q", names)
		}
		return nil, usagef("the bridge of this report was started by %q%s: give --yes to start that, --exec with a command of yours, or --to", noted, variables)
	}
	if r.yes {
		if strings.Contains(noted, redact.Mark) {
			return nil, usagef("the command of the report held a secret that the report does not: give the command by --exec")
		}
		r.command, r.env = noted, notedNames(o.Report)
	}
	return r.start(cmd, o)
}

// notedNames are the names of variables that the bridge of a report received.
func notedNames(report *reports.Report) []string {
	var names []string
	list, _ := report.Settings[envSetting].([]any)
	for _, name := range list {
		if text, ok := name.(string); ok {
			names = append(names, text)
		}
	}
	return names
}

// start starts the bridge and a mock, brings that into the state of the check, and sends the request.
func (r *restart) start(cmd *cobra.Command, o suites.ReplayOptions) (*suites.Replayed, error) {
	if site, noted := o.Report.Settings[siteSetting]; noted && site != mockSite {
		return nil, usagef("the report is of the site %v, and replay has only %s: run the clause instead: bridgecheck run --exec … --only %s --keep", site, mockSite, o.Clause)
	}
	env, err := (&runFlags{env: r.env}).environment(r.command, &config.File{})
	if err != nil {
		return nil, err
	}
	logs, err := os.MkdirTemp("", "bridgecheck-*")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the log of the bridge: %w", err)
	}
	defer os.RemoveAll(logs)
	options, err := settingsOf(o.Report)
	if err != nil {
		return nil, err
	}
	p := &plan{exec: r.command, env: env, readyTimeout: readyTime, reportDir: logs}
	stage, err := p.stage(cmd.Context(), leg{options: options})
	if err != nil {
		return nil, err
	}
	defer stage.close()
	created, err := suites.Restage(o.Report, o.Clause, stage.drupal)
	if err != nil {
		return nil, err
	}
	o.To, o.Getenv, o.Accounts = stage.target.URL, secretsOf(stage.drupal), created
	return suites.Replay(cmd.Context(), o)
}

// settingsOf are the settings of a report that a bridge of --exec receives.
func settingsOf(report *reports.Report) (suites.Options, error) {
	o := suites.Options{Capabilities: report.Capabilities, PageSize: 50}
	if n, ok := report.Settings["page_size"].(json.Number); ok {
		size, err := n.Int64()
		if err != nil || size < 1 || size > 1<<20 {
			return o, usagef("the report has the page size %s", n)
		}
		o.PageSize = int(size)
	}
	for name, kept := range map[string]*time.Duration{"discovery_ttl": &o.DiscoveryTTL, "upstream_timeout": &o.UpstreamTimeout} {
		text, ok := report.Settings[name].(string)
		if !ok {
			continue
		}
		var err error
		if *kept, err = time.ParseDuration(text); err != nil || *kept < 0 {
			return o, usagef("the report has the setting %s %q, which is no time", name, text)
		}
	}
	return o, nil
}
