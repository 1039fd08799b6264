package suites

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// Bounds of what one check notes: a bridge where everything is wrong costs no more than one where nothing is.
const (
	maxFindings   = 100
	maxUnanswered = 3   // parts that got no answer in time
	keptFinding   = 500 // bytes of a finding's message
)

// part is what a check judges apart from the rest: one tool, one caller, one tool as one caller, or one row of a table,
// by what is wrong with it. "" stands for all.
type part struct {
	tool, identity, row string
}

// finding is a fault of one part, and the answer that shows it.
type finding struct {
	part
	message string
	answer  *Answer // nil: none did
}

// findings are what the running check has noted.
type findings struct {
	noted      []finding
	judged     []part
	unanswered int
	summed     bool // the check has failed for what is noted
}

// For judges one part of a check: a tool as a caller sees it, or, where tool is "", all that the caller sees. Where an
// assertion in it fails, the fault is noted and the check goes on with its next part; it fails when it ends. A part that
// was found wrong is not judged again.
func (b *Bridge) For(who Identity, tool string, judge func()) {
	b.apart(part{tool: tool, identity: b.lasting(who)}, judge)
}

// Row is For for one row of a table, which is told by name: what the caller sends, of the tool if it is about one.
func (b *Bridge) Row(who Identity, tool, name string, judge func()) {
	b.apart(part{tool, b.lasting(who), name}, judge)
}

func (b *Bridge) apart(p part, judge func()) {
	f := &b.findings
	if why := f.enough(); why != "" {
		if f.noted[len(f.noted)-1].message != why {
			f.noted = append(f.noted, finding{message: why})
		}
		return
	}
	if f.holds(p) {
		return
	}
	b.blame(nil)
	err := gomega.InterceptGomegaFailure(judge)
	f.judged = append(f.judged, p)
	if err == nil {
		return
	}
	shown := b.blamedNow()
	f.noted = append(f.noted, finding{p, about(sentence(err.Error()), p.row), shown})
	if shown != nil && errors.Is(shown.Err, errTimeout) {
		f.unanswered++
	}
}

// each judges every answer apart from the others.
func (b *Bridge) each(answers []*Answer, judge func(a *Answer)) {
	for _, a := range answers {
		b.Row(a.Who, "", a.Subject(), func() { judge(a) })
	}
}

// eachTool judges every tool of a listing apart from the others.
func (b *Bridge) eachTool(list Listing, judge func(page *Answer, t Tool)) {
	for _, page := range list.Pages {
		for _, t := range page.Tools() {
			b.For(page.Who, t.Name(), func() { judge(page, t) })
		}
	}
}

// foundWrong tells whether the running check has noted a fault of the tool as the caller sees it.
func (b *Bridge) foundWrong(who Identity, tool string) bool {
	return b.findings.holds(part{tool: tool, identity: b.lasting(who)})
}

// wrong tells whether the running check has noted a fault already.
func (b *Bridge) wrong() bool { return len(b.findings.noted) > 0 }

// enough says why the rest is not judged; "" as long as it is.
func (f *findings) enough() string {
	switch {
	case f.unanswered >= maxUnanswered:
		return fmt.Sprintf("%d got no answer within the time-out: the rest was not asked", f.unanswered)
	case len(f.noted) >= maxFindings:
		return fmt.Sprintf("%d are wrong: the rest was not judged", maxFindings)
	}
	return ""
}

// holds tells whether a part was found wrong, all that it belongs to, or a row that belongs to it. Of accounts that were
// made for the check nobody knows which it was.
func (f *findings) holds(p part) bool {
	return slices.ContainsFunc(f.noted, func(n finding) bool {
		switch {
		case n.tool != p.tool || n.identity != p.identity:
			return false
		case n.row == p.row:
			return p != part{}
		}
		return (n.row == "" || p.row == "") && p.tool+p.identity != ""
	})
}

// lasting is the name of a caller as a finding has it: "" for an account that was made for the check, whose name is
// another one in the next run.
func (b *Bridge) lasting(who Identity) string {
	if b.Drupal != nil && b.Drupal.made(who) {
		return ""
	}
	return who.String()
}

// found gives the findings of a check that ended as spec says, without secrets; none where it noted none or was kept from
// its end by the harness.
func (b *Bridge) found(spec types.SpecReport) []finding {
	noted := b.findings.noted
	switch {
	case len(noted) == 0:
		return nil
	case spec.State == types.SpecStateFailed && !b.findings.summed:
		noted = append(noted, finding{message: sentence(spec.Failure.Message)})
	case spec.State != types.SpecStateFailed && spec.State != types.SpecStateSkipped:
		return nil
	}
	all := slices.Clone(noted)
	for i := range all {
		f := &all[i]
		f.tool, f.row, f.message = b.redact.Text(f.tool), b.redact.Text(f.row), exact.Cut(b.redact.Text(f.message), keptFinding)
	}
	return all
}

// reported are findings as a report has them; at gives where the evidence has the exchange of an answer.
func (b *Bridge) reported(all []finding, at func(*Answer) *int) []reports.Finding {
	told := make([]reports.Finding, len(all))
	for i, f := range all {
		told[i] = reports.Finding{Tool: f.tool, Identity: f.identity, Row: f.row, Message: f.message, Request: at(f.answer)}
		if expected, got := splitMismatch(f.message); expected != "" {
			told[i].Subject, _, _ = strings.Cut(f.message, ": expected ")
			told[i].Expected, told[i].Actual = expected, got
		}
	}
	return told
}
