package php_test

import (
	"net/url"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

func TestQueryReadsArgumentsAsPHPDoes(t *testing.T) {
	for _, c := range []struct {
		raw, value  string
		isList, has bool
	}{
		{"", "", false, false},
		{"query=a", "a", false, true},
		{"query", "", false, true},
		{"query=a&query=b", "b", false, true},
		{"query[]=a", "a", true, true},
		{"query[x]=a", "a", true, true},
		{"query[=a", "", false, false},
		{"+query=a+b%20c", "a b c", false, true},
		{"%71uery=100%", "100%", false, true},
		{"Query=a", "", false, false},
	} {
		if value, isList, has := php.Query(c.raw, "query"); value != c.value || isList != c.isList || has != c.has {
			t.Errorf("%q: %q, list %v, has %v; want %q, %v, %v", c.raw, value, isList, has, c.value, c.isList, c.has)
		}
	}
}

// FuzzURLDecode: what net/url decodes, PHP decodes in the same way; nothing else may fail or grow.
func FuzzURLDecode(f *testing.F) {
	f.Add("a+b%2Fc%")
	f.Add("%zz%")
	f.Fuzz(func(t *testing.T, s string) {
		got := php.URLDecode(s)
		must.Expect(t, len(got) <= len(s), "%q became longer: %q", s, got)
		want, err := url.QueryUnescape(s)
		must.Expect(t, err != nil || got == want, "%q: got %q, want %q", s, got, want)
		php.Query(s, "query")
	})
}
