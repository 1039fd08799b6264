package check

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Finding is one failed expectation as a value: what was looked at, what the contract expects of it, and what came.
type Finding struct {
	Subject  string // the request, or the part of the site, that was looked at
	Expected string // "": Subject says all there is to say
	Actual   string
	Tool     string    // that it is about; "": all
	Identity string    // of the caller who is affected; "": all
	Row      string    // of the table of inputs; "": it stands in no table
	Missing  string    // the header that the response lacks; "": that is not what is wrong
	Withheld bool      // the caller does not get what is the caller's own: nobody gets what is not
	Response *Response // that shows it; nil: none does
}

// Mismatch is the finding of a subject that is not as expected.
func Mismatch(subject, expected, actual string) Finding {
	return Finding{Subject: subject, Expected: expected, Actual: actual}
}

// String is the finding as one sentence, `SUBJECT: expected X, got Y`; "" for the zero value.
func (f Finding) String() string {
	if f.Expected == "" {
		return f.Subject
	}
	return f.Subject + ": expected " + f.Expected + ", got " + f.Actual
}

// IsZero reports whether nothing was found.
func (f Finding) IsZero() bool { return f.Subject == "" && f.Expected == "" }

// About adds a note to the subject, unless the subject contains it.
func (f Finding) About(note string) Finding {
	switch {
	case note == "" || strings.Contains(" "+f.Subject+" ", " "+note+" "):
	case f.Expected == "":
		f.Subject = note + ": " + f.Subject
	case len(f.Subject) > 0 && f.Subject[len(f.Subject)-1] == ')':
		f.Subject = f.Subject[:len(f.Subject)-1] + ", " + note + ")"
	default:
		f.Subject += " (" + note + ")"
	}
	return f
}

// Expectation is an actual value that is about to be compared.
type Expectation struct {
	t      *T
	actual any
}

// Expect starts an expectation of the running check.
func (t *T) Expect(actual any) Expectation { return Expectation{t, actual} }

// To ends the check, or its part (For, Row), with a finding where the matcher does not match. The note is a Finding
// that says all, or a format and its values that say more of the subject.
func (e Expectation) To(matcher types.GomegaMatcher, note ...any) { e.match(matcher, true, note) }

// NotTo is To for a matcher that must not match.
func (e Expectation) NotTo(matcher types.GomegaMatcher, note ...any) { e.match(matcher, false, note) }

func (e Expectation) match(matcher types.GomegaMatcher, want bool, note []any) {
	matched, err := matcher.Match(e.actual)
	if err != nil {
		panic(fmt.Sprintf("a check compares what cannot be compared: %v", err))
	}
	if matched == want {
		return
	}
	f := e.finding(matcher, want, note)
	if a, ok := e.actual.(*Response); ok && want && e.t.inPart {
		if resend := e.t.besides[a]; resend != nil {
			delete(e.t.besides, a)
			panic(stopped{f, resend})
		}
	}
	e.t.Fail(f)
}

// Finder is a matcher that says by itself what was expected and what came.
type Finder interface {
	Finding(actual any, matched bool) Finding
}

func (e Expectation) finding(matcher types.GomegaMatcher, want bool, note []any) Finding {
	text := ""
	if len(note) > 0 {
		if said, ok := note[0].(Finding); ok {
			if shown, ok := e.actual.(string); ok && said.Actual == "" {
				said.Actual = shown
			}
			return said
		}
		text = fmt.Sprintf(note[0].(string), note[1:]...)
	}
	if m, ok := matcher.(Finder); ok {
		return m.Finding(e.actual, !want).About(text)
	}
	switch shown := e.actual.(type) {
	case Finding:
		return shown.About(text)
	case string:
		if text != "" {
			return Finding{Subject: text + ": " + shown}
		}
	}
	message := matcher.NegatedFailureMessage
	if want {
		message = matcher.FailureMessage
	}
	found := Finding{Subject: client.OneLine(message(e.actual))}.About(text)
	found.Response, _ = e.actual.(*Response)
	return found
}

// stopped is what a failed expectation panics with inside a part of a check.
type stopped struct {
	Finding
	resend func() // sends the request alone, which came beside others, so that the part is tested again; nil: the finding counts
}

// Fail ends the check, or its part, with a finding.
func (t *T) Fail(f Finding) {
	if f.Response != nil {
		t.Blame(f.Response)
	} else {
		f.Response = t.Blamed()
	}
	if t.inPart {
		panic(stopped{f, nil})
	}
	t.mu.Lock()
	if t.failed == nil {
		t.failed = &f
	}
	t.mu.Unlock()
	panic(failed{})
}

// found runs a part of a check and gives the finding that ended it; nil when none did.
func (t *T) found(test func()) (f *stopped) {
	defer func(before bool) { t.inPart = before }(t.inPart)
	t.inPart = true
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopped:
			f = &r
		default:
			panic(r)
		}
	}()
	test()
	return nil
}

// BeNone matches the zero Finding.
func BeNone() types.GomegaMatcher { return noFinding{} }

type noFinding struct{}

func (noFinding) Match(actual any) (bool, error) {
	f, ok := actual.(Finding)
	if !ok {
		return false, fmt.Errorf("a finding is needed, not a %T", actual)
	}
	return f.IsZero(), nil
}

func (noFinding) FailureMessage(actual any) string { return actual.(Finding).String() }

func (noFinding) NegatedFailureMessage(any) string { return "expected a finding, got none" }
