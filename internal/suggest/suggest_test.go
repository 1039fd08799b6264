package suggest

import (
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"page", "page", 0}, {"descrbe", "describe", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		got := Distance(c.a, c.b)
		must.Expect(t, got == c.want, "Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
	}
}

func TestAmong(t *testing.T) {
	commands := []string{"run", "report"}
	for word, want := range map[string]string{"repot": "did you mean report?", "something": "there are run, report"} {
		got := Among(word, commands)
		must.Expect(t, got == want, "Among(%q) = %q, want %q", word, got, want)
	}
}

func TestNearest(t *testing.T) {
	commands := []string{"run", "report", "replay", "mock"}
	for _, c := range []struct{ word, nearest, near string }{
		{"repot", "report", "report"},
		{"RUN", "run", "run"},
		{"repl", "replay", "replay"},
		{"something", "run", ""},
		{"", "run", ""},
	} {
		got := Nearest(c.word, commands)
		must.Expect(t, got == c.nearest, "Nearest(%q) = %q, want %q", c.word, got, c.nearest)
		got = Near(c.word, commands)
		must.Expect(t, got == c.near, "Near(%q) = %q, want %q", c.word, got, c.near)
	}
	got := Nearest("x", nil) + Near("x", nil)
	must.Expect(t, got == "", "of nothing the nearest is %q", got)
}
