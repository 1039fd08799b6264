package attacks

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// dialectTrap is a server that nobody may ask for a schema; %s in a schema stands for its address.
func dialectTrap(t *testing.T) (address string, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	trap := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w, `{}`) //nolint:errcheck // nobody should read it
	}))
	return trap.URL, asked
}

// Whatever a schema declares, compiling and using it fetches nothing.
func TestDialectIsNeverFetched(t *testing.T) {
	trap, asked := dialectTrap(t)
	for _, doc := range []string{
		`{"$schema":"%s"}`, `{"$schema":"%s/draft-07/schema#"}`, `{"$schema":"%s/json-schema.org/draft/2020-12/schema"}`, `{"$schema":"%s#","$id":"%s/id"}`,
		`{"properties":{"a":{"$schema":"%s"}}}`, `{"properties":{"a":{"$schema":"%s","$id":"%s/a","$ref":"#/definitions/x"}},"definitions":{"x":{}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"$id":"%s/a","$schema":"%s"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{"%s":true}}`,
		`{"$id":"%s/id","properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"$id":"y"}}}`, `{"id":"%s/id","$ref":"#/definitions/x","definitions":{"x":{}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"%s/id","properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{}}}`,
		`{"enum":[{"$ref":"%s"}]}`, `{"const":{"$schema":"%s"}}`, `{"default":{"$ref":"%s"},"examples":[{"$ref":"%s"}]}`, `{"x-own":{"$ref":"%s"}}`,
		`{"properties":{"a":{"$ref":"#/x-own"}},"x-own":{"$schema":"%s","$id":"%s/x","items":{"$ref":"#/x-own"}}}`,
	} {
		doc = strings.ReplaceAll(doc, "%s", trap)
		if s, err := schema.Compile([]byte(doc)); err == nil {
			for _, value := range []string{`{"a":{}}`, `{"a":{"x":[` + strings.Repeat("0,", 100_000) + `0]}}`} { // by a library, and by its plan
				_, err := (*schema.Validator)(nil).Validate(t.Context(), fair.Key{}, s, []byte(value))
				must.Expect(t, err == nil || errors.Is(err, schema.ErrTooMuch), "%s: %v", doc, err)
			}
		}
		n := asked.Swap(0)
		must.Expect(t, n <= 0, "%s: %d requests", doc, n)
	}
}

// A strange $schema on one parameter costs neither the method nor what its other parameters say.
func TestDialectOfOneParameterCostsNothing(t *testing.T) {
	trap, asked := dialectTrap(t)
	older := `"pair":{"schema":{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}},"n":{"schema":{"type":"integer","maximum":3}}`
	for name, declared := range map[string]string{
		"unknown":                `"` + trap + `/schema"`,
		"of another draft":       `"http://json-schema.org/draft-03/schema#"`,
		"of the future":          `"https://json-schema.org/draft/2099-01/schema"`,
		"a relative one":         `"schema.json"`,
		"a file":                 `"file:///etc/passwd"`,
		"a name that ends alike": `"` + trap + `/json-schema.org/draft/2020-12/schema"`,
		"a fragment more":        `"https://json-schema.org/draft/2020-12/schema#x"`,
		"2020-12":                `"https://json-schema.org/draft/2020-12/schema"`,
		"2020-12 over http":      `"http://json-schema.org/draft/2020-12/schema#"`,
		"2019-09":                `"https://json-schema.org/draft/2019-09/schema"`,
		"Draft 7 over https":     `"https://json-schema.org/draft-07/schema"`,
		"Draft 6":                `"http://json-schema.org/draft-06/schema#"`,
		"Draft 4":                `"http://json-schema.org/draft-04/schema#"`,
		"empty":                  `""`,
		"a number":               `5`,
		"an object":              `{"$ref":"` + trap + `"}`,
		"a list":                 `[]`,
		"null":                   `null`,
	} {
		for place, one := range map[string]string{
			"itself": `{"$schema":%s,"type":"string","maxLength":5}`,
			"within": `{"type":"object","properties":{"x":{"$schema":%s,"type":"string"}}}`,
		} {
			t.Run(name+", "+place, func(t *testing.T) {
				method := fmt.Sprintf(`{"id":"content.odd","attributes":{"usage":"Odd","params":{"odd":{"schema":%s},%s},"mcpTool":{}}}`, fmt.Sprintf(one, declared), older)
				site := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/jsonrpc" {
						io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":1}`) //nolint:errcheck // the bridge complains
						return
					}
					io.WriteString(w, `{"data":[`+method+`],"meta":{"mcp":{"discovery":true}}}`) //nolint:errcheck // the bridge complains
				}))
				base := identityBridge(t, site.URL, func(o *bridge.Options) { o.AdminTokens = []caller.Secret{"operator"} })
				if r := identitySend(t, "GET", base+"/mcp/tools/list", ""); !strings.Contains(r.body, "content.odd") {
					t.Errorf("the tool is gone: %s\n%s", r.body, identitySend(t, "GET", base+"/mcp/admin/diagnostics", "", "Authorization", "Bearer operator").body)
				}
				call := func(arguments string) identityReply {
					return identitySend(t, "POST", base+"/mcp/tools/invoke", `{"name":"content.odd","arguments":`+arguments+`}`)
				}
				r := call(`{"n":2,"pair":["a",1]}`)
				must.Expect(t, r.status == 200, "good arguments: %d %s", r.status, r.body)
				if r := call(`{"n":4}`); r.status != 400 || !strings.Contains(r.body, `"parameter":"n"`) {
					t.Errorf("what another parameter says: %d %s", r.status, r.body)
				}
				call(`{"odd":5}`).expect(t, 400, "what the parameter itself says")
				n := asked.Swap(0)
				must.Expect(t, n <= 0, "%d requests for a schema", n)
			})
		}
	}
}
