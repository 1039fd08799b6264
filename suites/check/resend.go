package check

import (
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
)

// lateCall is how long a call that a bridge still makes may take to reach the mock after the bridge has closed the
// caller's connection.
const lateCall = 30 * time.Millisecond

// mayRepeat reports whether a request whose connection was dropped may go out again: it can be sent from its beginning,
// and either it runs no tool whatever becomes of it, or no call has reached the mock since it was sent.
func (c Client) mayRepeat(r Request, since int64) bool {
	if r.Body != nil {
		seeker, ok := r.Body.(io.Seeker)
		if !ok {
			return false
		}
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return false
		}
	}
	if !c.mayRun(r) {
		return true
	}
	if c.T.Drupal == nil {
		return false
	}
	time.Sleep(lateCall)
	for _, entry := range c.T.Upstream.Recorder.Journal().Entries(since) {
		if entry.Path == "/jsonrpc" {
			return false
		}
	}
	return true
}

// mayRun reports whether a request may run a tool, by whatever verb. Without a mock only a tool that the configuration
// allows is ever named where it would run.
func (c Client) mayRun(r Request) bool {
	switch {
	case r.Path == ListPath || r.Path == DescribePath:
		return false
	case c.T.Drupal != nil || r.Body != nil && r.Show == "":
		return true
	}
	query := r.Query.Encode() + r.Raw
	if plain, err := url.QueryUnescape(query); err == nil {
		query = plain
	}
	return slices.ContainsFunc(c.T.Invocations, func(i Invocation) bool {
		return strings.Contains(r.Show, i.Tool) || strings.Contains(query, i.Tool) || strings.Contains(r.Path, url.PathEscape(i.Tool))
	})
}
