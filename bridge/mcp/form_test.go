package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/invoke"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

func formOf(t *testing.T, d catalog.Definition) (*form, map[string]any) {
	t.Helper()
	if d.Name == "" {
		d.Name, d.Description = "tool", "A tool"
	}
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	f := newForm(catalog.NewTool(d, schema.NewLazy))
	var listed map[string]any
	err := json.Unmarshal(f.listed, &listed)
	must.Assert(t, err == nil, "listed as %s: %v", f.listed, err)
	return f, listed
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b := must.Get(json.Marshal(v))(t)
	return string(b)
}

func TestOutputSchemas(t *testing.T) {
	for name, c := range map[string]struct{ declared, want string }{
		"an object stays": {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"properties":{"a":{"type":"string"}},"type":"object"}`},
		"a list is wrapped": {`{"type":"array","items":{"type":"string"}}`,
			`{"properties":{"result":{"items":{"type":"string"},"type":"array"}},"required":["result"],"type":"object"}`},
		"two types are wrapped": {`{"type":["object","null"]}`,
			`{"properties":{"result":{"type":["object","null"]}},"required":["result"],"type":"object"}`},
		"references move with what is wrapped": {`{"type":"array","items":{"$ref":"#/definitions/a"},"definitions":{"a":{"type":"string"}}}`,
			`{"properties":{"result":{"definitions":{"a":{"type":"string"}},"items":{"$ref":"#/properties/result/definitions/a"},"type":"array"}},"required":["result"],"type":"object"}`},
		"the dialect stays at the root": {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"string"}`,
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"result":{"type":"string"}},"required":["result"],"type":"object"}`},
		"a boolean property is written as an object": {`{"type":"object","properties":{"a":true,"b":false}}`,
			`{"properties":{"a":{},"b":{"not":{}}},"type":"object"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, listed := formOf(t, catalog.Definition{OutputSchema: json.RawMessage(c.declared)})
			must.Equal(t, encoded(t, listed["outputSchema"]), c.want, "outputSchema of %s", c.declared)
		})
	}
}

func TestDraft7IsSaidWhereItReadsOtherwise(t *testing.T) {
	for schema, says := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`:                                 false,
		`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`:                    true,
		`{"type":"object","properties":{"a":{"$ref":"#/definitions/x","minLength":3}},"definitions":{"x":{}}}`: true,
		`{"type":"object","properties":{"a":{"$ref":"#/definitions/x","title":"A"}},"definitions":{"x":{}}}`:   false,
		`{"type":"object","properties":{"a":{"dependentRequired":{"b":["c"]}}}}`:                               true,
		`{"type":"object","properties":{"dependencies":{"type":"string"}}}`:                                    false,
		`{"type":"object","properties":{"a":{"const":{"items":[1]}}}}`:                                         false,
	} {
		_, listed := formOf(t, catalog.Definition{InputSchema: json.RawMessage(schema)})
		_, said := listed["inputSchema"].(map[string]any)["$schema"]
		must.Expect(t, said == says, "%s: $schema is there: %v, want %v", schema, said, says)
	}
}

func TestAnnotationsKeepWhatMCPKnowsAndMoveTheRest(t *testing.T) {
	_, listed := formOf(t, catalog.Definition{Annotations: json.RawMessage(
		`{"readOnlyHint":true,"destructiveHint":"no","idempotentHint":null,"title":"T","category":{"a":[1]}}`)})
	got, want := encoded(t, listed["annotations"]), `{"readOnlyHint":true,"title":"T"}`
	must.Expect(t, got == want, "annotations: got %s, want %s", got, want)
	got, want = encoded(t, listed["_meta"]), `{"org.drupal/annotations":{"category":{"a":[1]}}}`
	must.Expect(t, got == want, "_meta: got %s, want %s", got, want)
}

func TestResults(t *testing.T) {
	for name, c := range map[string]struct{ output, annotations, result, want string }{
		"a string is text as it is":  {"", "", `"a\nb"`, `{"content":[{"type":"text","text":"a\nb"}]}`},
		"all else is JSON":           {"", "", `[1.0,{}]`, `{"content":[{"type":"text","text":"[1.0,{}]"}]}`},
		"an object is structured":    {`{"type":"object"}`, "", `{"a":12345678901234567890}`, `{"content":[{"type":"text","text":"{\"a\":12345678901234567890}"}],"structuredContent":{"a":12345678901234567890}}`},
		"PHP's [] becomes an object": {`{"type":"object"}`, "", `[]`, `{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}`},
		"a list is wrapped":          {`{"type":"array"}`, "", `[]`, `{"content":[{"type":"text","text":"{\"result\":[]}"}],"structuredContent":{"result":[]}}`},
		"an image":                   {"", `{"resultContent":"image"}`, `{"data":"AA==","mimeType":"image/png"}`, `{"content":[{"data":"AA==","mimeType":"image/png","type":"image"}]}`},
		"an image that is none":      {"", `{"resultContent":"image"}`, `{"data":1}`, `{"content":[{"type":"text","text":"{\"data\":1}"}]}`},
		"a resource":                 {"", `{"resultContent":"resource"}`, `{"uri":"a:b","text":"c"}`, `{"content":[{"type":"resource","resource":{"uri":"a:b","text":"c"}}]}`},
		"blocks":                     {"", `{"resultContent":"blocks"}`, `[{"type":"text","text":"a"}]`, `{"content":[{"type":"text","text":"a"}]}`},
		"blocks that are none":       {"", `{"resultContent":"blocks"}`, `[{"type":"film"}]`, `{"content":[{"type":"text","text":"[{\"type\":\"film\"}]"}]}`},
		"a result of another shape": {`{"type":"object"}`, "", `5`,
			`{"content":[{"type":"text","text":"The result of tool does not conform to its output schema: the whole: expected object, received number 5."},{"type":"text","text":"5"}],"isError":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := catalog.Definition{Name: "tool", Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`)}
			if c.output != "" {
				d.OutputSchema = json.RawMessage(c.output)
			}
			if c.annotations != "" {
				d.Annotations = json.RawMessage(c.annotations)
			}
			tool := catalog.NewTool(d, schema.NewLazy)
			server := &Server{o: Options{Invoker: &invoke.Invoker{}}}
			got, wrong := server.finished(t.Context(), request{}, newForm(tool), tool, json.RawMessage(c.result))
			must.Expect(t, wrong == nil && string(got) == c.want, "%v\n got %s\nwant %s", wrong, got, c.want)
		})
	}
}

func TestHeadersRepeatArguments(t *testing.T) {
	schema := `{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"again":{"type":"string","x-mcp-header":"region"},
		"list":{"type":"array","x-mcp-header":"List"},
		"blank":{"type":"string","x-mcp-header":"a b"},
		"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`
	f, listed := formOf(t, catalog.Definition{InputSchema: json.RawMessage(schema)})
	n := strings.Count(encoded(t, listed["inputSchema"]), headerKeyword)
	must.Expect(t, n == 2, "x-mcp-header stands %d times in %s, want it at region and deep.n", n, f.listed)
	for name, c := range map[string]struct {
		arguments string
		headers   map[string]string
		agrees    bool
	}{
		"nothing":           {`{}`, nil, true},
		"equal":             {`{"region":"eu","deep":{"n":3}}`, map[string]string{"Region": "eu", "N": "3.0"}, true},
		"in base64":         {`{"region":"Zürich"}`, map[string]string{"Region": "=?base64?WsO8cmljaA==?="}, true},
		"without padding":   {`{"region":"Zürich"}`, map[string]string{"Region": "=?base64?WsO8cmljaA?="}, false},
		"another":           {`{"region":"eu"}`, map[string]string{"Region": "us"}, false},
		"missing":           {`{"region":"eu"}`, nil, false},
		"for null":          {`{"region":null}`, map[string]string{"Region": "eu"}, false},
		"null, and nothing": {`{"region":null}`, nil, true},
		"below no object":   {`{"deep":[3]}`, map[string]string{"N": "3"}, false},
	} {
		h := http.Header{}
		for k, v := range c.headers {
			h.Set("Mcp-Param-"+k, v)
		}
		wrong := f.agreeOn(t.Context(), h, []byte(c.arguments))
		must.Expect(t, (wrong == nil) == c.agrees, "%s: agrees: %v, want %v", name, wrong == nil, c.agrees)
	}
}

// A site may declare any number of them, and each call looks for all.
func TestHeadersOfOneToolAreBounded(t *testing.T) {
	var properties []string
	for i := range mostHeaders + 1 {
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"H%d"}}}`, i, i))
	}
	f, listed := formOf(t, catalog.Definition{InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)})
	n := strings.Count(encoded(t, listed["inputSchema"]), headerKeyword)
	must.Expect(t, n == mostHeaders && len(f.headers) == n, "x-mcp-header stands %d times, and %d headers are expected", n, len(f.headers))
	gone, leave := context.WithCancel(t.Context())
	leave()
	wrong := f.agreeOn(gone, http.Header{}, []byte(`{}`))
	must.Expect(t, wrong != nil && strings.Contains(wrong.message, "went away"), "a caller that left is told %+v", wrong)
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `[]`, `{"jsonrpc":"2.0","result":{}}`, `{"id":1.5}`, `{"jsonrpc":"2.0","method":"a","params":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, wrong := read(body)
		if wrong != nil {
			response := failure(m.id, wrong)
			must.Expect(t, json.Valid(response), "the response to %q is no JSON: %s", body, response)
			return
		}
		must.Expect(t, m.id == nil || json.Valid(response(m.id, []byte("{}"))), "the id %q of %q makes no JSON", m.id, body)
	})
}
