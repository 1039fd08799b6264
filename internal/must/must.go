// Package must ends a test whose preparations fail. What a test is about it compares itself, and says what it wanted.
package must

import "testing"

// Get returns a value, or ends the test with the error: must.Get(os.ReadFile(path))(t).
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Do ends the test with the error, if there is one.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
