package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/surface"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// lockFile is where the surface of a bridge's tools is kept.
const lockFile = "tools.lock.json"

func newTools() *cobra.Command {
	cmd := &cobra.Command{Use: "tools", Short: "Lock the tools that callers see, and show what changed: lock, diff",
		Example: "  bridgecheck tools diff tools.lock.json --exec 'node bridge.js'"}
	cmd.AddCommand(newToolsLock(), newToolsDiff(), newToolsRules())
	return cmd
}

// toolsSource is where tools are read from: a file, or a bridge that the flags of run name.
type toolsSource struct {
	runFlags
	caller string // of a saved list
}

const sourceHelp = `A source is a bridge, by --url or --exec with the flags of run, or a file: a lock, a report (or its
directory), a site file or the name of a built-in site, or a saved list of tools, such as the result
of MCP's tools/list. Of a site file, the reference bridge shows the tools.

A bridge is asked for its list as each account of the mock Drupal behind it, or as each identity of
--config, and without credentials. A bridge with the capability -tools is asked by MCP.`

func (s *toolsSource) addFlags(cmd *cobra.Command) {
	settings.AddSome(cmd.Flags(), &s.Values, "config", "url", "exec", "mock-listen", "drupal", "with-module", "mcp-stdio", "env", "ready-timeout", "capabilities",
		"page-size", "discovery-ttl", "upstream-timeout", "timeout", "rate")
	cmd.Flags().StringVar(&s.caller, "caller", "agent", "`name` of the caller who sees the tools of a saved list")
}

func newToolsLock() *cobra.Command {
	var output string
	s := &toolsSource{}
	cmd := &cobra.Command{
		Use:   "lock [SOURCE]",
		Short: "Write the tools that each caller sees into a file, for review",
		Long: `lock writes the tools that callers see (names, titles, descriptions, schemas and annotations, per
caller) into a file, sorted, so that the same tools are the same file. Commit it; tools diff says
what changed since.

` + sourceHelp,
		Example: `  bridgecheck tools lock --exec 'node bridge.js'
  bridgecheck tools lock --config bridge.yaml -o tools.lock.json
  bridgecheck tools lock site.yaml -o -`,
		Args: someArguments(0, 1, "one source at most: a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			seen, _, err := s.read(cmd, args)
			if err != nil {
				return err
			}
			data, err := seen.Lock()
			if err != nil {
				return err
			}
			if output == "-" {
				return deliver(cmd, "", terminal.JSON(data))
			}
			if err := deliver(cmd, output, data); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", output, counted(seen))
			return err
		},
	}
	s.addFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", lockFile, "`file` to write; - is stdout")
	return cmd
}

// counted says how many tools and callers there are.
func counted(s *surface.Surface) string {
	names := map[string]bool{}
	for _, t := range s.Tools {
		names[t.Name()] = true
	}
	return fmt.Sprintf("%d tools, %d callers", len(names), len(s.Callers))
}

func newToolsDiff() *cobra.Command {
	var output, form, allow string
	var strict bool
	s := &toolsSource{}
	cmd := &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Classify what changed in the tools: breaking for callers, for models, or additive",
		Long: `diff compares the tools of two sources, the older first, and classifies each difference: breaking
for callers (a tool is lost, an argument more is required, a type is narrower, a result promises
less), breaking for models (descriptions, annotations that change safety), or additive. tools rules
lists the rules, each with its reason. An example shows a value that one side takes and the other
refuses, where one is found.

` + sourceHelp + `

--allow names a file as that of known failures (run --baseline), with rules in place of clauses:

  known:
    - clause: input/required
      tool: content.search
      reason: agreed with the callers, issue 7
      until: 2027-01-31

Exit codes: 0 nothing breaks · 1 a difference breaks callers or changes safety (--strict: or warns),
or an entry of the allow-list does not hold · 2 wrong usage · 3 the bridge cannot be reached.`,
		Example: `  bridgecheck tools diff tools.lock.json --exec 'node bridge.js'
  bridgecheck tools diff tools.lock.json new.lock.json --format markdown -o tools.md
  bridgecheck tools diff tools.lock.json --config bridge.yaml --allow tools-allow.yaml`,
		Args: someArguments(1, 2, "one source or two: the older, and the newer unless --url or --exec names it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(surface.Formats, form) {
				return usagef("--format is %q: give one of %s", form, strings.Join(surface.Formats, ", "))
			}
			var allowed *baseline.File
			if allow != "" {
				var err error
				if allowed, err = readAllowed(allow); err != nil {
					return err
				}
			}
			old, _, err := s.file(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			now, name, err := s.read(cmd, args[1:])
			if err != nil {
				return err
			}
			d := surface.Compare(cmd.Context(), old, now)
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			d.Old, d.New, d.Strict = args[0], name, strict
			if allowed != nil {
				d.Allow(allowed, time.Now())
			}
			lock, _ := os.ReadFile(args[0]) // a source without lines, such as a site's name, has line 1
			var b bytes.Buffer
			if err := d.Write(&b, form, thisTool().Version, surface.Lines(lock)); err != nil {
				return err
			}
			data := b.Bytes()
			if output == "" && (form == "json" || form == "sarif") {
				data = terminal.JSON(data)
			}
			if err := deliver(cmd, output, data); err != nil {
				return err
			}
			return endWith(d.ExitCode())
		},
	}
	s.addFlags(cmd)
	cmd.Flags().StringVar(&form, "format", "console", "`format`: "+strings.Join(surface.Formats, ", "))
	cmd.Flags().StringVar(&allow, "allow", "", "`file` of differences that may be, each with a reason and a last day")
	cmd.Flags().BoolVar(&strict, "strict", false, "differences that only warn, such as of descriptions, fail too")
	addOutput(cmd, &output)
	return cmd
}

// readAllowed reads an allow-list and checks its rules.
func readAllowed(path string) (*baseline.File, error) {
	file, err := baseline.Read(path)
	if err != nil {
		return nil, usageError(err)
	}
	var ids []string
	for _, r := range surface.Rules() {
		ids = append(ids, r.ID)
	}
	if err := file.Check(ids); err != nil {
		return nil, usageError(err)
	}
	return file, nil
}

func newToolsRules() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "rules",
		Short:   "List the rules by which tools diff classifies, with their reasons",
		Example: "  bridgecheck tools rules",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), surface.Rules())
			}
			w := newTable(cmd.OutOrStdout())
			for _, r := range surface.Rules() {
				w.row(r.ID, string(r.Class), string(r.Level), r.Says+": "+r.Why)
			}
			return w.Flush()
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

// read reads the one source that an argument or the flags name, and says what it is called.
func (s *toolsSource) read(cmd *cobra.Command, args []string) (*surface.Surface, string, error) {
	changed := cmd.Flags().Changed
	named := ""
	for _, flag := range []string{"url", "exec", "config", "mcp-stdio"} {
		if changed(flag) {
			named = "--" + flag
		}
	}
	switch {
	case len(args) == 1 && named != "":
		return nil, "", usagef("%s and %s both name tools: give one of the two", args[0], named)
	case len(args) == 1:
		return s.file(cmd.Context(), args[0])
	case named == "":
		return nil, "", usagef("whose tools? give a file, or a bridge by --url, --exec or --config")
	}
	return s.bridge(cmd)
}

// file reads a file, or a built-in site by its name.
func (s *toolsSource) file(ctx context.Context, path string) (*surface.Surface, string, error) {
	_, missing := os.Stat(path)
	if missing == nil && !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
		seen, err := surface.Read(path, s.caller)
		if !errors.Is(err, surface.ErrOther) {
			if err != nil {
				err = usageError(err)
			}
			return seen, path, err
		}
	}
	site, err := openSite(path)
	if err != nil && missing != nil && !strings.HasPrefix(path, "bulk-") {
		return nil, "", usagef("there is no file %s: a source is a lock, a report, a saved list of tools, a site file, or a built-in site (%s)",
			path, strings.Join(fixtures.Names(), ", "))
	}
	if err != nil {
		return nil, "", err
	}
	seen, err := ofSite(ctx, site)
	return seen, path, err
}

// ofSite lists the tools that the reference bridge makes of a site.
func ofSite(ctx context.Context, site *fixtures.Site) (*surface.Surface, error) {
	drupal, err := mockdrupal.New(site, mockdrupal.Options{})
	if err != nil {
		return nil, err
	}
	server, err := drupal.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	b, err := bridge.New(bridge.Options{Drupal: server.URL, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	front := httptest.NewServer(b)
	defer front.Close()
	o := engine.Options{Capabilities: engine.DefaultCapabilities}
	o.Site.Drupal = drupal
	return list(ctx, engine.Target{URL: front.URL}, o, nil)
}

// bridge lists the tools of the bridge that the flags name.
func (s *toolsSource) bridge(cmd *cobra.Command) (seen *surface.Surface, name string, err error) {
	err = s.onStage(cmd, func(target engine.Target, bridge string, o engine.Options) error {
		name = bridge
		seen, err = list(cmd.Context(), target, o, nil)
		return err
	})
	return seen, name, err
}

// onStage starts what the flags name, as a run does, and stops it when use has ended. The name of the bridge is without secrets.
func (f *runFlags) onStage(cmd *cobra.Command, use func(target engine.Target, name string, o engine.Options) error) error {
	p, err := f.plan(cmd)
	if err != nil {
		return err
	}
	if err := p.logIn(cmd, &f.Values); err != nil {
		return err
	}
	if p.reportDir, err = os.MkdirTemp("", "bridgecheck-*"); err != nil {
		return fmt.Errorf("make a directory for the log of the bridge: %w", err)
	}
	defer os.RemoveAll(p.reportDir)
	defer func() {
		if err := p.file.End(context.WithoutCancel(cmd.Context()), p.file.Sessions()...); err != nil {
			cmd.PrintErrf("bridgecheck: %s\n", terminal.Escape(err.Error()))
		}
	}()
	defer p.closeGroup(cmd.Context())
	stage, err := p.stage(cmd.Context(), p.legs[0])
	if err != nil {
		return err
	}
	defer stage.close()
	name := p.exec
	name = cmp.Or(name, stage.target.URL)
	o := stage.options(p.legs[0].options)
	return use(stage.target, o.Redactor().Text(name), o)
}

// list asks a bridge for its tools as each caller of whom there are credentials, and as nobody. A list that cannot be read goes into
// broken, by its caller; nil: it is an error, as is a bridge that refuses all.
func list(ctx context.Context, target engine.Target, o engine.Options, broken map[string]string) (*surface.Surface, error) {
	callers := []check.Identity{check.Anonymous}
	for who := range o.Callers.Credentials {
		callers = append(callers, who)
	}
	if o.Site.Drupal != nil {
		callers = append(callers, accountsOf(o.Site.Drupal)...)
	}
	slices.Sort(callers)
	seen, served := &surface.Surface{}, false
	for _, who := range slices.Compact(callers) {
		client, err := engine.Client(ctx, target, o, who)
		if err != nil {
			return nil, err
		}
		caller := surface.Caller{Name: who.String()}
		tools, last, fault := toolsFor(ctx, client, slices.Contains(o.Capabilities, "tools"))
		switch {
		case last.Status == http.StatusUnauthorized || last.Status == http.StatusForbidden:
			caller.Refused = last.Status
		case last.Status == 0:
			return nil, &engine.UnreachableError{URL: target.URL, Reason: last.Err}
		case fault != "" && broken != nil:
			broken[caller.Name] = fault
		case fault != "":
			return nil, fmt.Errorf("the list of tools of %s cannot be read: %s", who, fault)
		default:
			served = true
		}
		seen.Add(caller, tools)
	}
	if !served && broken == nil {
		return nil, usagef("the bridge refuses all callers: give it credentials of a caller by --config")
	}
	return seen, nil
}

// toolsFor is the whole list that a caller is shown, its last response, and what is wrong with it.
func toolsFor(ctx context.Context, c check.Client, rest bool) ([]map[string]any, *check.Response, string) {
	var tools []check.Tool
	var last *check.Response
	var fault check.Finding
	if rest {
		l := c.ListAll(ctx)
		tools, last, fault = l.Tools(), l.Last(), l.Fault
		for _, page := range l.Pages {
			if _, is := page.Object()["tools"].([]any); !is && fault.IsZero() {
				return nil, last, fmt.Sprintf("%s has no list of tools: %s", page.Subject(), page.Outcome())
			}
		}
	} else {
		session, opened := c.AnyMCP(ctx)
		if !opened {
			return nil, session.Opened, session.Opened.RPCOutcome()
		}
		l := check.ListAllTools(ctx, session)
		tools, last, fault = l.Tools, l.Pages[len(l.Pages)-1], l.Fault
	}
	all := make([]map[string]any, len(tools))
	for i, t := range tools {
		if t.Name() == "" {
			return nil, last, fmt.Sprintf("tool %d has no name", i+1)
		}
		all[i] = t
	}
	if fault.IsZero() {
		return all, last, ""
	}
	return all, last, fault.String()
}
