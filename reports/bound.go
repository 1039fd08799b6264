package reports

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// limits bound what a report holds, so that no bridge can make one too large to open.
type limits struct {
	text      int // bytes of a message, expected or actual value
	findings  int // findings of one result
	finding   int // bytes of one finding's message
	exchanges int // exchanges of one result; the first eighth and the last ones stay
	body      int // bytes of one body
	evidence  int // bytes of all bodies together; failing results are served first
}

// reportLimits apply to report.json and so to every format, since all are made of it; a page shows less of each body.
var (
	reportLimits = limits{text: 64 << 10, findings: 128, finding: 2 << 10, exchanges: 64, body: 64 << 10, evidence: 24 << 20}
	pageLimits   = limits{text: 16 << 10, findings: 128, finding: 1 << 10, exchanges: 64, body: 16 << 10, evidence: 8 << 20}
)

// Excerpt is a copy of r for a page: it has at most 16 KiB of a value or a body.
func (r *Report) Excerpt() *Report { return bounded(r, pageLimits) }

// bounded is r within l: valid UTF-8, valid JSON, no nil where report.json has an array. r is left as it is.
func bounded(r *Report, l limits) *Report {
	c := *r
	c.Capabilities = notNil(c.Capabilities)
	c.Ledger.Unchecked = notNil(c.Ledger.Unchecked)
	c.CutShort, c.NoBridge = text(c.CutShort, l.text), text(c.NoBridge, l.text)
	c.DurationMS = max(c.DurationMS, 0)
	if c.Cost != nil {
		c.Cost = &Cost{max(c.Cost.Requests, 0), max(c.Cost.CPUMS, 0), max(c.Cost.BridgeCPUMS, 0)}
	}
	c.Since = boundedSince(c.Since, l)
	c.Results = make([]Result, len(r.Results))
	for i, result := range r.Results {
		c.Results[i] = boundedResult(result, l)
	}
	budget := l.evidence
	for _, verdict := range Verdicts() {
		for i := range c.Results {
			if c.Results[i].Verdict == verdict {
				budget = spend(c.Results[i].Evidence, budget)
			}
		}
	}
	return &c
}

func boundedSince(c *Comparison, l limits) *Comparison {
	if c == nil {
		return nil
	}
	b := *c
	for _, s := range []*Side{&b.Old, &b.New} {
		for _, value := range []*string{&s.Target.URL, &s.Target.Name, &s.Ledger, &s.Started, &s.Headline} {
			*value = text(*value, l.text)
		}
	}
	for _, changes := range []*[]Change{&b.NewlyFailing, &b.Fixed, &b.StillFailing, &b.Changed, &b.Unjudged, &b.Ledger} {
		*changes = notNil(slices.Clone(*changes))
		for i := range *changes {
			(*changes)[i].Message = text((*changes)[i].Message, l.text)
		}
	}
	return &b
}

func boundedResult(r Result, l limits) Result {
	for _, s := range []*string{&r.Text, &r.Source, &r.Message, &r.Expected, &r.Actual, &r.Note, &r.Curl, &r.Why, &r.Remedy, &r.KnownReason} {
		*s = text(*s, l.text)
	}
	r.Findings = slices.Clone(r.Findings[:min(len(r.Findings), l.findings)])
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, s := range []*string{&f.Subject, &f.Expected, &f.Actual, &f.Tool, &f.Identity, &f.Row, &f.Message, &f.KnownReason} {
			*s = text(*s, l.finding)
		}
	}
	r = boundedEvidence(r, l.exchanges)
	r.DurationMS, r.WaitedMS, r.Requests = duration(r.DurationMS), duration(r.WaitedMS), max(r.Requests, 0)
	for i := range r.Evidence {
		r.Evidence[i] = boundedExchange(r.Evidence[i], l)
	}
	return r
}

// boundedEvidence keeps at most most exchanges: the first ones, those that findings blame, and of the last ones as many as
// there is room for. The findings, which r does not share, point to where their exchanges stand then.
func boundedEvidence(r Result, most int) Result {
	at := make([]int, len(r.Evidence)) // where each exchange goes; -1: nowhere
	kept := 0
	keep := func(i int) {
		if i >= 0 && i < len(at) && at[i] < 0 && kept < most {
			at[i] = 0
			kept++
		}
	}
	for i := range at {
		at[i] = -1
	}
	for i := range most / 8 {
		keep(i)
	}
	for _, f := range r.Findings[:min(len(r.Findings), most/2)] {
		if f.Request != nil {
			keep(*f.Request)
		}
	}
	for i := range slices.Backward(at) {
		keep(i)
	}
	evidence := []Exchange{}
	for i, e := range r.Evidence {
		if at[i] == 0 {
			at[i] = len(evidence)
			evidence = append(evidence, e)
		}
	}
	r.EvidenceOmitted += len(r.Evidence) - kept
	r.Evidence = evidence
	for i := range r.Findings {
		if from := r.Findings[i].Request; from != nil {
			r.Findings[i].Request = nil
			if *from >= 0 && *from < len(at) && at[*from] >= 0 {
				r.Findings[i].Request = new(at[*from])
			}
		}
	}
	return r
}

func boundedExchange(e Exchange, l limits) Exchange {
	e.Error = text(e.Error, l.text)
	e.Request = boundedMessage(e.Request, l.body)
	e.Credentials = slices.Clone(e.Credentials[:min(len(e.Credentials), maxHeaders)])
	for i := range e.Credentials {
		c := &e.Credentials[i]
		c.Header, c.Scheme, c.User = text(c.Header, 256), text(c.Scheme, 256), text(c.User, 1<<10)
	}
	if e.Account != nil {
		e.Account = &Account{Permissions: notNil(e.Account.Permissions)}
	}
	if e.Response != nil {
		response := boundedMessage(*e.Response, l.body)
		e.Response = &response
	}
	if over := len(e.Drupal) - l.exchanges; over > 0 {
		e.Drupal = e.Drupal[:l.exchanges]
	}
	e.Drupal = notNil(slices.Clone(e.Drupal))
	for i, up := range e.Drupal {
		e.Drupal[i].DurationMS = duration(up.DurationMS)
		if len(up.Params) > l.body || !json.Valid(up.Params) && len(up.Params) > 0 {
			// What is no JSON, or too long, stands as a string: a report is always readable.
			e.Drupal[i].Params, _ = json.Marshal(text(string(up.Params), l.body))
		}
	}
	return e
}

// duration is a time in milliseconds as the schema has it: a clock that was moved gives none.
func duration(ms float64) float64 {
	if ms >= 0 && !math.IsInf(ms, 1) {
		return ms
	}
	return 0
}

// maxHeaders is how many headers of a message a report has.
const maxHeaders = 64

func boundedMessage(m Message, body int) Message {
	m.DurationMS = duration(m.DurationMS)
	const header = 8 << 10
	m.URL = text(m.URL, header)
	m = cutBody(m, body)
	kept := make(map[string]string, len(m.Header))
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		if len(kept) < maxHeaders {
			kept[text(name, 256)] = text(m.Header[name], header)
		}
	}
	if m.Header != nil {
		m.Header = kept
	}
	return m
}

// cutBody cuts m's body to max bytes as they stand in the report and counts in Truncated what went.
func cutBody(m Message, max int) Message {
	if m.Encoding == "base64" {
		if len(m.Body) > max {
			cut := max - max%4
			m.Truncated += base64.StdEncoding.DecodedLen(len(m.Body)) - strings.Count(m.Body, "=") - cut/4*3
			m.Body = m.Body[:cut]
		}
		return m
	}
	m.Body = strings.ToValidUTF8(m.Body, "\uFFFD")
	if len(m.Body) > max {
		kept := strings.ToValidUTF8(m.Body[:max], "")
		m.Truncated += len(m.Body) - len(kept)
		m.Body = kept
	}
	return m
}

// spend takes the bodies of evidence out of budget, empties those that no longer fit, and gives what is left of it.
func spend(evidence []Exchange, budget int) int {
	for i := range evidence {
		for _, m := range []*Message{&evidence[i].Request, evidence[i].Response} {
			if m == nil {
				continue
			}
			*m = cutBody(*m, budget)
			budget -= len(m.Body)
		}
	}
	return budget
}

func text(s string, max int) string { return terminal.Clip(strings.ToValidUTF8(s, "\uFFFD"), max) }

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
