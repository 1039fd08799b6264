// Package must ends a test whose preparations fail, skips one that lacks what it needs, and says what was expected where something
// else came; it also serves handlers as long as a test lasts.
package must

import (
	"net/http"
	"net/http/httptest"
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
