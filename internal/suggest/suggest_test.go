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
		must.Equal(t, Distance(c.a, c.b), c.want, "Distance(%q, %q)", c.a, c.b)
	}
}

func TestAmong(t *testing.T) {
	commands := []string{"run", "report"}
	for word, want := range map[string]string{"repot": "did you mean report?", "something": "there are run, report"} {
		must.Equal(t, Among(word, commands), want, "Among(%q)", word)
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
		must.Equal(t, Nearest(c.word, commands), c.nearest, "Nearest(%q)", c.word)
		must.Equal(t, Near(c.word, commands), c.near, "Near(%q)", c.word)
	}
	must.Equal(t, Nearest("x", nil)+Near("x", nil), "", "the nearest of nothing")
}
