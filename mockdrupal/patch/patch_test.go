package patch_test

import (
	"encoding/json"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
)

// A patch is applied as a whole or not at all, and what it yields is a valid site.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		`{"disable":{"methods":["content.*"],"modules":["x"]}}`, `{"enable":{"methods":["*"]}}`, `{"disable":{"methods":["["]}}`,
		`{"methods":{"content.list":{"usage":"","access":["a"],"schemas":{"type":{"$ref":"#"}},"output":{},"exposed":false}}}`,
		`{"roles":{"anonymous":{"grant":["use jsonrpc services"]},"agent":{"revoke":["*"]}},"users":{"agent":{"password":"x","roles":["y"],"blocked":true}},"extensions":true}`,
	} {
		f.Add([]byte(s))
	}
	site, err := fixtures.Parse("site.yaml", []byte(`
roles: {agent: [access content]}
users: [{uid: 2, name: agent, password: agent-pass, roles: [agent]}]
methods:
- {id: content.list, usage: Lists, access: [access content], params: {type: {schema: {type: string}}}, output: {type: array}, behaviour: echo}
- {id: content.get, usage: Gets, module: extra, behaviour: echo}
`))
	must.Do(f, err)
	before := must.Get(site.YAML())(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var p patch.Patch
		if json.Unmarshal(data, &p) != nil {
			return
		}
		changed, _, err := p.Apply(site, patch.Parking{})
		after, failed := site.YAML()
		must.Assert(t, failed == nil && string(after) == string(before), "%s changes the site that it was applied to a clone of: %v", data, failed)
		if err != nil {
			return
		}
		text, err := changed.YAML()
		must.Assert(t, err == nil, "%s: %v", data, err)
		_, err = fixtures.Parse("patched", text)
		must.Expect(t, err == nil, "%s yields a site that is none: %v", data, err)
	})
}
