package caller

import (
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestATraceOfTheMessageComesFirst(t *testing.T) {
	const own, other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	header := Trace{RequestID: "r", Parent: other, State: "h=1"}
	for _, c := range []struct {
		parent, state string
		want          Trace
	}{
		{"", "", header},
		{own, "m=1", Trace{"r", own, "m=1"}},
		{own, "", Trace{"r", own, ""}},
		{own, "m=1\r\nX-Evil: 1", Trace{"r", own, ""}},
		{own, strings.Repeat("m", 513), Trace{"r", own, ""}},
		{own + "\r\nX-Evil: 1", "m=1", header},
		{strings.ToUpper(own), "m=1", header},
		{"00-short-00f067aa0ba902b7-01", "m=1", header},
	} {
		must.Equal(t, header.Within(c.parent, c.state), c.want, "%q, %q", c.parent, c.state)
	}
}
