package caller

import (
	"net/http"
	"regexp"
)

// longestTrace is the longest header of a trace that is passed on, in bytes.
const longestTrace = 512

// Trace is what a request carries from front to site so that both logs can be joined.
type Trace struct {
	RequestID string // X-Request-ID
	Parent    string // traceparent
	State     string // tracestate
}

var (
	traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	tracestate  = regexp.MustCompile(`^[ -~]*$`)
)

// Within is the trace with the traceparent and tracestate that the message itself names. A malformed traceparent is
// ignored: it is no reason to refuse the message.
func (t Trace) Within(parent, state string) Trace {
	if !traceparent.MatchString(parent) {
		return t
	}
	t.Parent, t.State = parent, ""
	if len(state) <= longestTrace && tracestate.MatchString(state) {
		t.State = state
	}
	return t
}

func traceOf(h http.Header) Trace {
	read := func(name string) string { // as net/http spells it
		if v := h[name]; len(v) > 0 && len(v[0]) <= longestTrace {
			return v[0]
		}
		return ""
	}
	return Trace{RequestID: read("X-Request-Id"), Parent: read("Traceparent"), State: read("Tracestate")}
}
