package suites

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"bridgecheck/reports"
	"bridgecheck/suites/exact"
)

// Bounds of what one check notes: a bridge where everything is wrong costs no more than one where nothing is.
const (
	maxFindings   = 100
	maxUnanswered = 3   // parts that got no answer in time
	keptFinding   = 500 // bytes of a finding's message
)

// part is what a check judges apart from the rest: one tool, one caller, or one tool as one caller. "" stands for all.
type part struct {
	tool, identity string
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
	f, p := &b.findings, part{tool, b.lasting(who)}
	if why := f.enough(); why != "" {
		if !f.holds(part{}) {
			f.noted = append(f.noted, finding{message: why})
		}
		return
	}
	if p != (part{}) && f.holds(p) {
		return
	}
	b.blame(nil)
	err := gomega.InterceptGomegaFailure(judge)
	f.judged = append(f.judged, p)
	if err == nil {
		return
	}
	shown := b.blamedNow()
	f.noted = append(f.noted, finding{p, sentence(err.Error()), shown})
	if shown != nil && errors.Is(shown.Err, errTimeout) {
		f.unanswered++
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
	return b.findings.holds(part{tool, b.lasting(who)})
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

func (f *findings) holds(p part) bool {
	return slices.ContainsFunc(f.noted, func(n finding) bool { return n.part == p })
}

// lasting is the name of a caller as a finding has it: "" for an account that was made for the check, whose name is
// another one in the next run.
func (b *Bridge) lasting(who Identity) string {
	if b.Drupal != nil && b.Drupal.made(who) {
		return ""
	}
	return who.String()
}

// found gives the findings of a check that ended as spec says, none where it noted none or was kept from its end by the
// harness.
func (b *Bridge) found(spec types.SpecReport) []reports.Finding {
	noted := b.findings.noted
	switch {
	case len(noted) == 0:
		return nil
	case spec.State == types.SpecStateFailed && !b.findings.summed:
		noted = append(noted, finding{message: sentence(spec.Failure.Message)})
	case spec.State != types.SpecStateFailed && spec.State != types.SpecStateSkipped:
		return nil
	}
	all := make([]reports.Finding, len(noted))
	for i, n := range noted {
		all[i] = reports.Finding{Tool: b.redact.Text(n.tool), Identity: n.identity, Message: exact.Cut(b.redact.Text(n.message), keptFinding)}
	}
	return all
}

// whole is the message of a check with these findings: the first, and who else it is about.
func whole(all []reports.Finding) string {
	const named = 5
	if len(all) == 1 {
		return all[0].Message
	}
	var others []string
	for _, f := range all[1:min(len(all), 1+named)] {
		switch {
		case f.Tool != "" && f.Identity != all[0].Identity:
			others = append(others, fmt.Sprintf("%q as %s", f.Tool, f.Identity))
		case f.Tool != "":
			others = append(others, fmt.Sprintf("%q", f.Tool))
		case f.Identity != "":
			others = append(others, "as "+f.Identity)
		default:
			others = append(others, exact.Cut(f.Message, 160))
		}
	}
	if over := len(all) - 1 - named; over > 0 {
		others = append(others, "…")
	}
	return fmt.Sprintf("%s (and %d more: %s)", all[0].Message, len(all)-1, strings.Join(others, ", "))
}
