// Package reports holds the outcome of a run as data: a Report has a Result for each clause, with the findings and the
// exchanges that show them. It reads, writes, merges and compares reports; package format writes them for people and
// tools. Nothing here decides a verdict, and no text of a report is trusted, because a bridge may have sent it.
package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// SchemaVersion is the version of the layout of report.json.
const SchemaVersion = "1.0"

// Level is how binding a clause is.
type Level string

// The levels of a clause.
const (
	MUST   Level = "MUST"
	SHOULD Level = "SHOULD"
	MAY    Level = "MAY"
)

// Wire is what has to be seen of a bridge: of a clause to test it, of a run to count its clauses.
type Wire string

// Front is the front side of a bridge alone: its URL. Empty or another value: the site behind it, too.
const Front Wire = "front"

// Verdict is the outcome of one clause.
type Verdict string

// The verdicts, as they stand in report.json.
const (
	Pass          Verdict = "pass"
	Fail          Verdict = "fail"
	Warn          Verdict = "warn"  // a SHOULD or MAY is broken
	Known         Verdict = "known" // fails, and the baseline excuses it
	Fixed         Verdict = "fixed" // passes, and the baseline says that it fails
	NotApplicable Verdict = "not-applicable"
	NotTestable   Verdict = "not-testable"
	Error         Verdict = "error" // the check itself failed
)

// Report is the outcome of one run against one bridge.
type Report struct {
	Schema       string         `json:"schema"`
	Tool         Tool           `json:"tool"`
	Ledger       Ledger         `json:"ledger"`
	Target       Target         `json:"target"`
	Started      time.Time      `json:"started"`
	DurationMS   int64          `json:"duration_ms"` // of the whole run by the clock on the wall, with all that is no check
	Capabilities []string       `json:"capabilities"`
	Settings     map[string]any `json:"settings,omitempty"` // page size, filters, time-outs: what repeating the run takes
	Measured     []Measurement  `json:"measured,omitempty"` // of a bridge that the run has not started
	Seed         int64          `json:"seed"`
	Environment  *Environment   `json:"environment,omitempty"`
	CutShort     string         `json:"cut_short,omitempty"` // why the run ended early; empty: it did not
	NoBridge     string         `json:"no_bridge,omitempty"` // why the target counts as no bridge at all; empty: it is one
	Filtered     bool           `json:"filtered,omitempty"`  // --only or --skip left clauses out
	Sample       int            `json:"sample,omitempty"`    // --sample: tools and cases of one check at most; 0: all
	Strict       bool           `json:"strict,omitempty"`
	Wire         Wire           `json:"wire,omitempty"` // front: the run counts what the front side shows; empty: both sides
	Summary      Summary        `json:"summary"`
	Results      []Result       `json:"results"`
	Cost         *Cost          `json:"cost,omitempty"` // nil: nobody measured it

	// Causes are Groups as report.json has them. They follow from the results: what reads a report leaves them out.
	Causes []Group `json:"groups,omitempty"`

	// Since is what changed from an earlier report; nil: none was given.
	Since *Comparison `json:"since,omitempty"`

	groups []Group // of an escaped report

	// BaselineProblems are the entries of the baseline that no longer hold; each of them fails the run.
	BaselineProblems []BaselineProblem `json:"baseline_problems,omitempty"`
}

// Cost is what the checks of a run took of the machine. A clause has no processor time of its own: the goroutines of all workers, of
// the mock and, in process, of the bridge share their threads.
type Cost struct {
	Requests    int   `json:"requests"`      // that all checks sent to the bridge
	CPUMS       int64 `json:"cpu_ms"`        // of the processor, that this process took: checks, mock and, in process, the bridge
	BridgeCPUMS int64 `json:"bridge_cpu_ms"` // that the processes took that the run started and that have ended
}

// Measurement is how a bridge behaves, as the run was told and as it saw it.
type Measurement struct {
	Setting  string `json:"setting,omitempty"`  // the key of what the run can be told; empty: nothing says it
	What     string `json:"what"`               // that was measured
	Given    string `json:"given,omitempty"`    // empty: the run was not told
	Measured string `json:"measured,omitempty"` // empty: it was not measured
	Used     string `json:"used,omitempty"`     // that the checks went by; empty: none
	Warning  string `json:"warning,omitempty"`  // one sentence, where what was given is contradicted
}

// String is the measurement in one line.
func (m Measurement) String() string {
	text := m.What + ": " + m.Measured
	if m.Setting != "" {
		text += fmt.Sprintf(" (%s: given %s, used %s)", m.Setting, cmp.Or(m.Given, "nothing"), cmp.Or(m.Used, "nothing"))
	}
	return text
}

// Environment is where the run took place; nothing of it is secret.
type Environment struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	Go   string `json:"go"`
	CI   string `json:"ci,omitempty"` // the CI system's name; empty: none that we recognise

	Lacks []string `json:"lacks,omitempty"` // what the machine was short of, and what the run did about it
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

// Ledger is the contract that the bridge was tested against. Checked counts the clauses that have a check, filtered out
// or not (0: unknown); Unchecked lists those that have none yet.
type Ledger struct {
	Version   string   `json:"version,omitempty"` // of the contract; empty in reports of builds that had one version only
	Revision  string   `json:"revision"`
	Checked   int      `json:"checked,omitempty"`
	Unchecked []string `json:"unchecked"`
}

// Name is the version and the revision, as far as the report has them.
func (l Ledger) Name() string {
	switch {
	case l.Version == "":
		return l.Revision
	case l.Revision == "":
		return l.Version
	}
	return l.Version + " (" + l.Revision + ")"
}

// Target is the bridge that was tested.
type Target struct {
	URL          string `json:"url"`
	Name         string `json:"name,omitempty"`
	Version      string `json:"version,omitempty"`
	Organisation string `json:"organisation,omitempty"`
	Contact      string `json:"contact,omitempty"`
	Proxy        string `json:"proxy,omitempty"` // in front of it, and what showed that; empty: none was seen
}

// Title is what a report calls its bridge: name and version where given, else its address.
func (t Target) Title() string {
	if t.Name == "" {
		return t.URL
	}
	return strings.TrimSpace(t.Name + " " + t.Version)
}

// Summary counts the verdicts.
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

// Result is the verdict on one clause, with its evidence. What is wrong stands in Findings; Message, Expected, Actual and
// Curl repeat the finding to read first, as Conclude fills them in.
type Result struct {
	ID         string     `json:"id"`
	Level      Level      `json:"level"`
	Area       string     `json:"area"`
	Text       string     `json:"text,omitempty"`       // the clause's requirement
	Source     string     `json:"source,omitempty"`     // where the requirement comes from
	Capability string     `json:"capability,omitempty"` // what the bridge must claim for it to apply
	Wire       Wire       `json:"wire,omitempty"`       // what has to be seen to test it; empty in reports of earlier builds
	Verdict    Verdict    `json:"verdict"`
	Message    string     `json:"message,omitempty"`  // one sentence; empty for pass
	Expected   string     `json:"expected,omitempty"` // by the contract
	Actual     string     `json:"actual,omitempty"`   // what the bridge did
	Note       string     `json:"note,omitempty"`     // what else is wrong; the message has it in parentheses
	DurationMS float64    `json:"duration_ms"`
	Requests   int        `json:"requests,omitempty"`  // that the check sent to the bridge
	WaitedMS   float64    `json:"waited_ms,omitempty"` // for their responses; those side by side count once
	During     string     `json:"during,omitempty"`    // the clause whose check noticed what is wrong; "": its own
	Evidence   []Exchange `json:"evidence"`
	Curl       string     `json:"curl,omitempty"` // repeats the failing request; credentials as $VARIABLES

	Why             string    `json:"why,omitempty"`              // what goes wrong for users when the clause is broken
	Remedy          string    `json:"remedy,omitempty"`           // how to fix it; not testable: what would make it testable
	KnownReason     string    `json:"known_reason,omitempty"`     // the baseline's reason for a known failure
	BlockedBy       []string  `json:"blocked_by,omitzero"`        // globs of the clauses that test what the check lacked; empty: not known; nil: it lacked nothing
	Findings        []Finding `json:"findings,omitempty"`         // what is wrong, in the order in which it was found
	EvidenceOmitted int       `json:"evidence_omitted,omitempty"` // exchanges left out to bound the report

	// Tested are the parts that the check tested one by one, right or wrong. It is for the baseline, and in no file.
	Tested []Part `json:"-"`
}

// Part is what a check tests apart from the rest: a tool, a caller, or a tool as a caller sees it. Empty: all.
type Part struct {
	Tool, Identity string
}

// Finding is one failed expectation. Subject, Expected and Actual say what was tested, what the contract asks and what came;
// where there is no pair to compare, Message alone says what is wrong.
type Finding struct {
	Request     *int   `json:"request,omitempty"` // the exchange that shows it, as an index of the result's evidence; nil: none
	Subject     string `json:"subject,omitempty"` // `POST /mcp/tools/invoke as agent`
	Expected    string `json:"expected,omitempty"`
	Actual      string `json:"actual,omitempty"`
	Tool        string `json:"tool,omitempty"`         // empty: the check tests all tools together
	Identity    string `json:"identity,omitempty"`     // empty: the check tests all callers together
	Row         string `json:"row,omitempty"`          // the row of the check's table; empty: there is none
	Message     string `json:"message"`                // one sentence; Conclude makes it of the members above
	Missing     string `json:"missing,omitempty"`      // the header that the response lacks; empty: that is not what is wrong
	Withheld    bool   `json:"withheld,omitempty"`     // the caller does not get what is the caller's own: nobody gets what is not
	Proxy       string `json:"proxy,omitempty"`        // what a proxy did that made the response in place of the bridge; empty: none did, as far as is known
	KnownReason string `json:"known_reason,omitempty"` // the baseline's reason; empty: no entry excuses it
}

// Exchange is one request to the bridge and its response, with what reached the site meanwhile.
type Exchange struct {
	Identity    string       `json:"identity"`
	Account     *Account     `json:"account,omitempty"`      // of an identity that the check created; nil: it was there before
	SiteChanged bool         `json:"site_changed,omitempty"` // the check had changed the site by then, apart from accounts that it created
	At          time.Time    `json:"at"`
	Request     Message      `json:"request"`
	Credentials []Credential `json:"credentials,omitempty"` // the headers of the request that hold secrets
	Response    *Message     `json:"response"`              // null: none came; Error says why
	Error       string       `json:"error,omitempty"`
	Drupal      []Upstream   `json:"drupal"`
}

// Account is an account of the mock that a check created, as it was when it sent the request.
type Account struct {
	Permissions []string `json:"permissions"`
}

// Credential is a request header whose value is a secret, and all of it that is not.
type Credential struct {
	Header string `json:"header"`           // `Authorization`
	Scheme string `json:"scheme,omitempty"` // what stands before the secret, as `Basic` or `Bearer`
	User   string `json:"user,omitempty"`   // the account's name in HTTP Basic
}

// Message is an HTTP message. A body that is not UTF-8 is base64 with Encoding "base64"; Truncated counts the bytes
// left out. Of the request to repeat, File holds the whole body where Body does not.
type Message struct {
	Method     string            `json:"method,omitempty"`
	URL        string            `json:"url,omitempty"`
	Status     int               `json:"status,omitempty"`
	Header     map[string]string `json:"header,omitempty"`
	Body       string            `json:"body,omitempty"`
	Encoding   string            `json:"encoding,omitempty"`
	Truncated  int               `json:"truncated,omitempty"`
	File       string            `json:"file,omitempty"` // beside the report, with a slash between folder and name
	DurationMS float64           `json:"duration_ms,omitempty"`

	// Whole is what File holds or will hold. It is in no report.json.
	Whole []byte `json:"-"`
}

// Upstream is one request that reached the site: its account, its method, whether that ran, and the site's status.
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
