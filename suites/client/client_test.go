package client

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// net/http goes on reading the body of an attempt whose response came early: the next one reads another.
func TestEachAttemptReadsABodyOfItsOwn(t *testing.T) {
	for what, body := range map[string]io.Reader{"bytes": bytes.NewReader([]byte("whole")), "text": strings.NewReader("whole")} {
		r := Request{Body: body}
		first, _ := r.body()
		must.Get(first.Read(make([]byte, 2)))(t)
		again, repeatable := r.body()
		got := must.Get(io.ReadAll(again))(t)
		must.Expect(t, repeatable && string(got) == "whole", "%s: the second attempt sends %q", what, got)
	}
	once := Request{Body: io.MultiReader(strings.NewReader("whole"))}
	must.Expect(t, !once.Repeatable(), "a stream is sent again")
}
