package reports

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Conclude fills in what follows from r's findings: the message of each, and r's own note, message, expected and actual
// value and curl line, which are those of Lead. A result without findings stays as it is.
func (r *Result) Conclude() {
	for i := range r.Findings {
		r.Findings[i].Message = r.Findings[i].sentence()
	}
	if lead, ok := r.Lead(); ok {
		r.Note = lead.others(r.Findings)
		r.setLead(lead)
	}
}

// Qualify replaces the note of a result: what stands behind its message in parentheses.
func (r *Result) Qualify(note string) {
	if lead, ok := r.Lead(); ok {
		r.Note = note
		r.setLead(lead)
	}
}

// setLead takes message, expected and actual value and curl line from the finding to read first.
func (r *Result) setLead(lead Finding) {
	r.Message = noted(lead.sentence(), r.Note)
	r.Expected, r.Actual, r.Curl = lead.Expected, lead.Actual, ""
	if e, ok := r.exchange(lead); ok {
		if len(e.Request.Whole) > 0 {
			e.Request.File = bodyFile(r.ID, *lead.Request)
			r.Evidence[*lead.Request] = e
		}
		r.Curl = e.Curl()
	}
}

// Lead returns the finding to read first: the first that no baseline entry excuses, else the first. False: there is none.
func (r Result) Lead() (Finding, bool) {
	for _, f := range r.Findings {
		if f.KnownReason == "" {
			return f, true
		}
	}
	if len(r.Findings) == 0 {
		return Finding{}, false
	}
	return r.Findings[0], true
}

// Blamed returns the exchange that shows the finding to read first. False: no exchange does, or it was left out.
func (r Result) Blamed() (Exchange, bool) {
	lead, ok := r.Lead()
	if !ok {
		return Exchange{}, false
	}
	return r.exchange(lead)
}

// exchange returns the one that a finding of r blames.
func (r Result) exchange(f Finding) (Exchange, bool) {
	if f.Request == nil || *f.Request < 0 || *f.Request >= len(r.Evidence) {
		return Exchange{}, false
	}
	return r.Evidence[*f.Request], true
}

// Subject is r's message for a reader who sees Expected and Actual beside it: what they are about.
func (r Result) Subject() string {
	lead, ok := r.Lead()
	if !ok || r.Verdict == Fixed || !lead.compares() {
		return r.Message
	}
	return noted(lead.about(), r.Note)
}

// payload is the body of a request in a subject, query a long query, and reply the body of a response with what was seen beside it.
var (
	query   = regexp.MustCompile(`(\?\S{24})\S{8,}`)
	payload = regexp.MustCompile(`\{.*(\}| bytes more\))`)
	reply   = regexp.MustCompile(`\{.*\}(, (?:and|but) )`)
)

// Brief is r's message where there is little room: without those and the other findings.
func (r Result) Brief() string { return r.BriefIn(math.MaxInt) }

// leastBrief is to what a part of a message is cut at most, in characters.
const leastBrief = 24

// BriefIn is Brief in about so many characters. What came is not cut for what stands before it: first that loses the row of the
// input, then it is cut, and then what was expected.
func (r Result) BriefIn(room int) string {
	lead, ok := r.Lead()
	if !ok || r.Verdict == Fixed || !lead.compares() {
		return r.Message
	}
	lead.Actual = reply.ReplaceAllString(lead.Actual, "{…}$1")
	about := payload.ReplaceAllString(query.ReplaceAllString(lead.about(), "$1…"), "{…}")
	over := func() int { return utf8.RuneCountInString(lead.says(about)) - room }
	if before, _, ok := strings.Cut(about, " ("); ok && over() > 0 {
		about = before
	}
	for _, part := range []*string{&about, &lead.Expected} {
		if text, n := []rune(*part), over(); n > 0 && len(text) > leastBrief {
			*part = strings.TrimRight(string(text[:max(leastBrief, len(text)-n)-1]), " ") + "…"
		}
	}
	return lead.says(about)
}

// askedBytes bounds the body in Asks.
const askedBytes = 120

// Asks is the request of e as a subject names one.
func (e Exchange) Asks() string {
	address := e.Request.URL
	if at, err := url.Parse(address); err == nil {
		address = at.RequestURI()
	}
	return fmt.Sprintf("%s %s as %s", e.Request.Method, strings.TrimRight(address+" "+shortened(e.Request.Body, askedBytes), " "), e.Identity)
}

// compares reports whether a finding has an expected and an actual value.
func (f Finding) compares() bool { return f.Subject != "" && f.Expected != "" }

// sentence is the finding as one sentence.
func (f Finding) sentence() string {
	if f.Message != "" || !f.compares() {
		return f.Message
	}
	return f.says(f.about())
}

func (f Finding) says(subject string) string {
	return strings.TrimSuffix(fmt.Sprintf("%s: expected %s, got %s; %s", subject, f.Expected, f.Actual, f.Proxy), "; ")
}

// about is the subject with its row, unless that is part of it.
func (f Finding) about() string {
	if strings.Contains(f.Subject, f.Row) {
		return f.Subject
	}
	return noted(f.Subject, f.Row)
}

func noted(text, note string) string {
	if note == "" {
		return text
	}
	return text + " (" + note + ")"
}

// Bounds of a note, in bytes.
const (
	notePlain   = 60  // a name that is read at a glance
	noteRow     = 80  // one row's name
	noteMessage = 160 // one message that stands for a name
)

// others counts the findings beside f and names one of them, with a plain name where there is one: the report has all.
func (f Finding) others(all []Finding) string {
	if len(all) < 2 {
		return ""
	}
	example, skipped := "", false
	for _, other := range all {
		if !skipped && other == f {
			skipped = true
			continue
		}
		if name := other.beside(f); example == "" || isPlain(name) {
			if example = name; isPlain(name) {
				break
			}
		}
	}
	if len(all) > 2 {
		example += ", …"
	}
	return fmt.Sprintf("and %d more: %s", len(all)-1, example)
}

// isPlain reports whether a name is short and has no letters but those of ASCII.
func isPlain(name string) bool {
	return len(name) <= notePlain && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '\\' })
}

// beside names what f is about, without what is the same in first.
func (f Finding) beside(first Finding) string {
	name := shortened(f.Row, noteRow)
	if f.Tool != "" && (name == "" || f.Tool != first.Tool) {
		if name != "" {
			name += " for "
		}
		name += fmt.Sprintf("%q", f.Tool)
	}
	if f.Identity != "" && (name == "" || f.Identity != first.Identity) {
		name = strings.TrimSpace(name + " as " + f.Identity)
	}
	if name == "" {
		return shortened(f.sentence(), noteMessage)
	}
	return name
}

// shortened cuts s between characters to at most most bytes and an ellipsis.
func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
