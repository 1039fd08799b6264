// Package reports holds the one model of a run's outcome and writes it in every form: JSON, a page, JUnit, SARIF,
// Markdown, badges, the console; it compares, merges, verifies and serves them. All forms are views of a Report; none
// of them decides a verdict, and none trusts a text in it: a bridge may have sent it.
package reports

import (
	"encoding/json"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// SchemaVersion is the version of report.json's layout.
const SchemaVersion = "1.0"

// Level is how binding a clause is.
type Level = contract.Level

// The levels of a clause.
const (
	MUST   = contract.MUST
	SHOULD = contract.SHOULD
	MAY    = contract.MAY
)

// Verdict is what a run says of one clause.
type Verdict string

// The verdicts, as they stand in report.json.
const (
	Pass          Verdict = "pass"
	Fail          Verdict = "fail"
	Warn          Verdict = "warn"  // a SHOULD that is not kept
	Known         Verdict = "known" // fails, as the baseline says
	Fixed         Verdict = "fixed" // the baseline says it fails, it passes
	NotApplicable Verdict = "not-applicable"
	NotTestable   Verdict = "not-testable"
	Error         Verdict = "error" // the harness could not judge
)

// Report is one run against one target.
type Report struct {
	Schema       string         `json:"schema"`
	Tool         Tool           `json:"tool"`
	Ledger       Ledger         `json:"ledger"`
	Target       Target         `json:"target"`
	Started      time.Time      `json:"started"`
	DurationMS   int64          `json:"duration_ms"`
	Capabilities []string       `json:"capabilities"`
	Settings     map[string]any `json:"settings,omitempty"` // page size, filters, time-outs: what a reader needs to repeat the run
	Seed         int64          `json:"seed"`
	Environment  *Environment   `json:"environment,omitempty"`
	CutShort     string         `json:"cut_short,omitempty"` // why the run ended early; empty: it did not
	NoBridge     string         `json:"no_bridge,omitempty"` // why the target counts as no bridge at all; empty: it is one
	Filtered     bool           `json:"filtered,omitempty"`  // --only or --skip left clauses out
	Strict       bool           `json:"strict,omitempty"`
	Summary      Summary        `json:"summary"`
	Results      []Result       `json:"results"`

	// Since tells what changed from an earlier report; nil: none was given.
	Since *Comparison `json:"since,omitempty"`

	// BaselineProblems are entries of the baseline that no longer hold; each of them fails the run.
	BaselineProblems []BaselineProblem `json:"baseline_problems,omitempty"`
}

// Environment is where the run took place; nothing of it is secret.
type Environment struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	Go   string `json:"go"`
	CI   string `json:"ci,omitempty"` // the CI system's name; empty: none was recognised
}

// BaselineProblem is a baseline entry that is expired or matches nothing that fails.
type BaselineProblem struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Clause string `json:"clause"`
	Text   string `json:"text"` // one sentence: what is wrong and what would be right
}

// Tool is the bridgecheck that made the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
}

// Ledger is the contract that was judged by. Checked counts the clauses that have a check, filtered out or not (0: not
// told); Unchecked lists those that have none yet.
type Ledger struct {
	Revision  string   `json:"revision"`
	Checked   int      `json:"checked,omitempty"`
	Unchecked []string `json:"unchecked"`
}

// Target is the bridge that was judged.
type Target struct {
	URL          string `json:"url"`
	Name         string `json:"name,omitempty"`
	Version      string `json:"version,omitempty"`
	Organisation string `json:"organisation,omitempty"`
	Contact      string `json:"contact,omitempty"`
}

// Summary counts verdicts.
type Summary struct {
	Pass          int  `json:"pass"`
	Fail          int  `json:"fail"`
	Warn          int  `json:"warn"`
	Known         int  `json:"known"`
	Fixed         int  `json:"fixed"`
	NotApplicable int  `json:"not_applicable"`
	NotTestable   int  `json:"not_testable"`
	Error         int  `json:"error"`
	Total         int  `json:"total"`
	Conformant    bool `json:"conformant"`
}

// Result is the verdict on one clause, with its evidence.
type Result struct {
	ID         string     `json:"id"`
	Level      Level      `json:"level"`
	Area       string     `json:"area"`
	Text       string     `json:"text,omitempty"`       // the clause's requirement
	Source     string     `json:"source,omitempty"`     // where the requirement comes from
	Capability string     `json:"capability,omitempty"` // what the bridge must claim for it to apply
	Verdict    Verdict    `json:"verdict"`
	Message    string     `json:"message,omitempty"` // one sentence; for pass empty
	Expected   string     `json:"expected,omitempty"`
	Actual     string     `json:"actual,omitempty"`
	DurationMS float64    `json:"duration_ms"`
	Evidence   []Exchange `json:"evidence"`
	Curl       string     `json:"curl,omitempty"` // reproduces the failing request; credentials as $VARIABLES

	Why             string    `json:"why,omitempty"`              // what goes wrong for users when the clause is broken
	Remedy          string    `json:"remedy,omitempty"`           // how to fix it; not testable: what would make it testable
	KnownReason     string    `json:"known_reason,omitempty"`     // the baseline's reason for a known failure
	Findings        []Finding `json:"findings,omitempty"`         // each fault, where a check judges several tools or callers
	EvidenceOmitted int       `json:"evidence_omitted,omitempty"` // exchanges left out to bound the report

	Judged []Part `json:"-"` // what the run judged apart from the rest, right or wrong; in no file
}

// Part is what a check judges apart from the rest: a tool, a caller, or a tool as a caller sees it. Empty: all.
type Part struct {
	Tool, Identity string
}

// Finding is one fault among several that a check found for one clause; baseline entries for a tool or an identity are
// held against it.
type Finding struct {
	Tool        string `json:"tool,omitempty"`
	Identity    string `json:"identity,omitempty"`
	Message     string `json:"message"`
	KnownReason string `json:"known_reason,omitempty"` // the baseline's; empty: no entry excuses it

	Expected, Actual, Curl string `json:"-"` // the result's own where this is the fault that it tells first; in no file
}

// Exchange is one request to the bridge and its answer, with what reached the site meanwhile.
type Exchange struct {
	Identity string     `json:"identity"`
	At       time.Time  `json:"at"`
	Request  Message    `json:"request"`
	Response *Message   `json:"response"` // null: none came; Error says why
	Error    string     `json:"error,omitempty"`
	Drupal   []Upstream `json:"drupal"`
}

// Message is an HTTP message. A body that is not UTF-8 is base64 with Encoding "base64"; Truncated counts the bytes
// left out.
type Message struct {
	Method     string            `json:"method,omitempty"`
	URL        string            `json:"url,omitempty"`
	Status     int               `json:"status,omitempty"`
	Header     map[string]string `json:"header,omitempty"`
	Body       string            `json:"body,omitempty"`
	Encoding   string            `json:"encoding,omitempty"`
	Truncated  int               `json:"truncated,omitempty"`
	DurationMS float64           `json:"duration_ms,omitempty"`
}

// Upstream is one request that reached the site: who, which method, whether it ran, and what the site answered.
type Upstream struct {
	At         time.Time       `json:"at"`
	User       string          `json:"user"`
	HTTP       string          `json:"http"`             // `POST /jsonrpc`
	Method     string          `json:"method,omitempty"` // JSON-RPC method id
	Params     json.RawMessage `json:"params,omitempty"`
	Ran        bool            `json:"ran"`
	Status     int             `json:"status"`
	Fault      string          `json:"fault,omitempty"`
	DurationMS float64         `json:"duration_ms"`
}
