// Package must ends a test whose preparations fail, skips one that lacks what it needs, and says what was expected where something
// else came; it also serves handlers as long as a test lasts.
package must

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

// Get returns a value, or ends the test with the error: must.Get(os.ReadFile(path))(t).
func Get[T any](value T, err error) func(tester) T {
	return func(t tester) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Do ends the test with the error, if there is one.
func Do(t tester, err error) {
	t.Helper()
	Assert(t, err == nil, "%v", err)
}

// tester is a test, a fuzz target or a test of drawn values.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Expect fails the test unless the condition holds, in words that say what there was instead, and goes on.
func Expect(t tester, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(format, args...)
	}
}

// Equal is Expect for a value that is as wanted; what says of what it is.
func Equal[T comparable](t tester, got, want T, what string, args ...any) {
	t.Helper()
	Expect(t, got == want, "%s: got %v, want %v", fmt.Sprintf(what, args...), got, want)
}

// Has is Expect for a text that contains another.
func Has(t tester, text, part, what string, args ...any) {
	t.Helper()
	Expect(t, strings.Contains(text, part), "%s: got %s, want it to contain %s", fmt.Sprintf(what, args...), text, part)
}

// Lacks is Expect for a text that does not contain another.
func Lacks(t tester, text, part, what string, args ...any) {
	t.Helper()
	Expect(t, !strings.Contains(text, part), "%s: got %s, want it not to contain %s", fmt.Sprintf(what, args...), text, part)
}

// Say is Expect for an error that says something, "" for any error; of says of what it is.
func Say(t tester, err error, says string, of ...any) {
	t.Helper()
	Expect(t, err != nil && strings.Contains(err.Error(), says), "%v: the error is %v, want one that says %q", of, err, says)
}

// Refuse is Say for a function that returns a value instead of an error: must.Refuse(Parse(text))(t, "line 3").
func Refuse[T any](value T, err error) func(t tester, says string, of ...any) {
	return func(t tester, says string, of ...any) {
		t.Helper()
		Say(t, err, says, append(of, value)...)
	}
}

// Assert is Expect for what the rest of the test depends on: it ends the test.
func Assert(t tester, holds bool, format string, args ...any) {
	t.Helper()
	if !holds {
		t.Fatalf(format, args...)
	}
}

// Serve serves a handler until the test ends.
func Serve(t interface{ Cleanup(func()) }, h http.Handler) *httptest.Server {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// Become is Assert for what another process or goroutine brings about, which has this long for it.
func Become(t tester, limit time.Duration, holds func() bool, format string, args ...any) {
	t.Helper()
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		Assert(t, time.Now().Before(end), format, args...)
	}
}

// Need skips the test unless what it needs is there.
func Need(t tester, there bool, format string, args ...any) {
	t.Helper()
	if !there {
		t.Skipf(format, args...)
	}
}
