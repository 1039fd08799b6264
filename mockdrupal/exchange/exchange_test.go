package exchange

import (
	"encoding/json"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// The id and the params of a call are kept byte by byte, as PHP finds them.
func FuzzReadCall(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","method":"a.b","id":1,"params":{"x":[1.0]}}`, `{"method":1e3,"id":null}`, `[]`, `{"id":{"id":2},"id":3}`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		c := ReadCall(doc)
		must.Expect(t, c.Notification == (c.ID == nil), "%q: %+v", doc, c)
		if !json.Valid(doc) {
			return
		}
		for _, part := range [][]byte{c.ID, c.Params} {
			must.Expect(t, part == nil || json.Valid(part), "%q holds %q", doc, part)
		}
	})
}
