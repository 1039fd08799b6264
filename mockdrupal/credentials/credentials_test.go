package credentials

import (
	"net/http"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A header holds Basic credentials or a bearer token; what is in base64 is read as it was written.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"Basic YTpi", "basic !!YTpi", "Bearer x", "Bearer", "a Bearer b", "Basic Bearer x"} {
		f.Add(s, "ann", "pass:word")
	}
	f.Fuzz(func(t *testing.T, header, name, password string) {
		h := http.Header{"Authorization": {header}, "Cookie": {header}}
		ReadBasic(h)
		ReadBearer(h)
		HasSession(&http.Request{Header: h})
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(name, password)
		n, p, ok := ReadBasic(r.Header)
		must.Expect(t, ok && n+":"+p == name+":"+password, "%q:%q is read as %q:%q, %t", name, password, n, p, ok)
	})
}
