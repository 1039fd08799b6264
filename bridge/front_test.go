package bridge_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge"
)

func TestRefusals(t *testing.T) {
	s := newSite(t, echo, `{"id":"hidden","attributes":{"usage":"Not exposed"}}`)
	front := start(t, s)
	invoke := func(body string) [3]string { return [3]string{"POST", "/mcp/tools/invoke", body} }
	get := func(path string) [3]string { return [3]string{"GET", path, ""} }
	for name, c := range map[string]struct {
		request [3]string
		status  int
		code    string
		says    string
	}{
		"no body":              {invoke(" "), 400, "invalid_json", "empty"},
		"cut body":             {invoke(`{"name":`), 400, "invalid_json", "too early"},
		"trailing garbage":     {invoke(`{"name":"content.echo","arguments":{}} x`), 400, "invalid_json", "after the end"},
		"byte order mark":      {invoke("\xef\xbb\xbf{}"), 400, "invalid_json", "byte order mark"},
		"invalid UTF-8":        {invoke("{\"name\":\"\xff\"}"), 400, "invalid_json", "UTF-8"},
		"duplicate member":     {invoke(`{"name":"content.echo","name":"content.echo","arguments":{}}`), 400, "invalid_json", "twice"},
		"array":                {invoke(`[]`), 400, "invalid_json", "array"},
		"deep":                 {invoke(`{"name":"content.echo","arguments":` + strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10001)), 400, "invalid_json", "deeper"},
		"no name":              {invoke(`{"arguments":{}}`), 400, "missing_parameter", "name"},
		"name is no string":    {invoke(`{"name":1,"arguments":{}}`), 400, "missing_parameter", "name"},
		"name in capitals":     {invoke(`{"NAME":"content.echo","arguments":{}}`), 400, "missing_parameter", "name"},
		"no arguments":         {invoke(`{"name":"content.echo"}`), 400, "missing_parameter", "arguments"},
		"arguments null":       {invoke(`{"name":"content.echo","arguments":null}`), 400, "invalid_params", "arguments"},
		"arguments a list":     {invoke(`{"name":"content.echo","arguments":[1]}`), 400, "invalid_params", "arguments"},
		"unknown tool":         {invoke(`{"name":"no.such","arguments":{}}`), 404, "tool_not_found", "no.such"},
		"hidden tool":          {invoke(`{"name":"hidden","arguments":{}}`), 404, "tool_not_found", "hidden"},
		"another case":         {invoke(`{"name":"Content.echo","arguments":{}}`), 404, "tool_not_found", "Content.echo"},
		"wrong type":           {invoke(`{"name":"content.echo","arguments":{"n":"x"}}`), 400, "invalid_params", "n: expected integer"},
		"below the minimum":    {invoke(`{"name":"content.echo","arguments":{"n":0}}`), 400, "invalid_params", "at least 1"},
		"sent as a form":       {[3]string{"FORM", "/mcp/tools/invoke", `{"name":"content.echo","arguments":{}}`}, 415, "unsupported_media_type", "application/json"},
		"GET on invoke":        {get("/mcp/tools/invoke"), 405, "method_not_allowed", "POST"},
		"DELETE on list":       {[3]string{"DELETE", "/mcp/tools/list", ""}, 405, "method_not_allowed", "GET"},
		"no name to describe":  {get("/mcp/tools/describe"), 400, "missing_parameter", "name"},
		"name as a list":       {get("/mcp/tools/describe?name[]=content.echo"), 400, "missing_parameter", "name"},
		"name twice":           {get("/mcp/tools/describe?name=a&name=b"), 400, "invalid_request", "more than once"},
		"name not UTF-8":       {get("/mcp/tools/describe?name=%ff"), 400, "invalid_request", "UTF-8"},
		"name badly escaped":   {get("/mcp/tools/describe?name=%zz"), 400, "invalid_request", "percent"},
		"describe unknown":     {get("/mcp/tools/describe?name=no.such"), 404, "tool_not_found", "no.such"},
		"describe hidden":      {get("/mcp/tools/describe?name=hidden"), 404, "tool_not_found", "hidden"},
		"describe with blank":  {get("/mcp/tools/describe?name=content.echo%20"), 404, "tool_not_found", "content.echo"},
		"describe a huge name": {get("/mcp/tools/describe?name=" + strings.Repeat("x", 8<<10)), 404, "tool_not_found", "xxx"},
		"cursor not base64":    {get("/mcp/tools/list?cursor=@@@"), 400, "invalid_cursor", "cursor"},
		"cursor twice":         {get("/mcp/tools/list?cursor=&cursor=NTA"), 400, "invalid_cursor", "cursor"},
		"unknown path":         {get("/mcp/tools/lists"), 404, "not_found", "path"},
		"slash at the end":     {get("/mcp/tools/list/"), 404, "not_found", "path"},
		"double slash":         {get("//mcp/tools/list"), 404, "not_found", "path"},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.calls.Load()
			verb, headers := c.request[0], []string(nil)
			if verb == "FORM" {
				verb, headers = "POST", []string{"Content-Type", "text/plain"}
			}
			r := send(t, front, "agent", verb, c.request[1], c.request[2], headers...)
			if r.Status != c.status || r.Code() != c.code || !strings.Contains(r.Body, c.says) {
				t.Errorf("got %d %.300s, want %d %s that says %q", r.Status, r.Body, c.status, c.code, c.says)
			}
			if c.status == 405 && r.Header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Cache-Control") == "" {
				t.Errorf("headers %v", r.Header)
			}
			if s.calls.Load() != before {
				t.Error("the site was called")
			}
		})
	}
}

func TestViolationsAreAllNamed(t *testing.T) {
	front := start(t, newSite(t, `{"id":"content.x","attributes":{"params":{"a":{"schema":{"type":"string"},"attributes":{"required":true}},
		"b":{"schema":{"type":"object","properties":{"c":{"enum":["x","y"]}}}}},"mcpTool":{}}}`))
	r := call(t, front, "agent", "content.x", `{"b":{"c":"z"}}`)
	var got struct {
		Error struct {
			Data struct {
				Parameter, Expected, Received string
				Errors                        []struct{ Parameter, Expected, Received, Schema_path string }
			}
		}
	}
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil {
		t.Fatal(err)
	}
	d := got.Error.Data
	if r.Status != 400 || d.Parameter != "a" || d.Expected != "a value" || d.Received != "nothing" || len(d.Errors) != 2 ||
		d.Errors[1].Parameter != "b.c" || d.Errors[1].Schema_path != "#/properties/b/properties/c/enum" {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}

func TestLenientWhereDrupalIs(t *testing.T) {
	front := start(t, newSite(t, echo))
	for _, arguments := range []string{`{}`, `{"n":null}`, `{"n":2.0}`, `{"unknown":1}`, `[]`} {
		if r := call(t, front, "agent", "content.echo", arguments); r.Status != 200 {
			t.Errorf("%s: %d %s", arguments, r.Status, r.Body)
		}
	}
}

// What a caller sends reaches the method byte for byte, and what the method gives comes back likewise.
func TestArgumentsAndResultsAreExact(t *testing.T) {
	front := start(t, newSite(t, echo))
	fixed := []string{`9007199254740993`, `9223372036854775807`, `1.0`, `-0.0`, `1e2`, `""`, `[]`, `{}`, `{"a":[],"b":{}}`, `"\u00e9 é 🚀 <b>&amp;"`, `0.1000000000000000055`, `[null,false,0]`}
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.OneOf(rapid.SampledFrom(fixed), rapid.Custom(func(t *rapid.T) string {
			b, _ := json.Marshal(rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Float64Range(-1e9, 1e9))).Draw(t, "map"))
			return string(b)
		})).Draw(rt, "value")
		arguments := `{"any":` + value + `}`
		if r := call(t, front, "agent", "content.echo", arguments); r.Body != `{"result":`+arguments+`}` {
			rt.Fatalf("sent %s, got %d %s", arguments, r.Status, r.Body)
		}
	})
}

func TestPages(t *testing.T) {
	for _, n := range []int{0, 1, 50, 51, 100, 101} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var ids []string
			s := newSite(t)
			for i := range n {
				ids = append(ids, fmt.Sprintf("content.m%03d", i))
				s.methods = append(s.methods, method(ids[i]))
			}
			front := start(t, s)
			var got []string
			cursor, pages := "", 0
			for {
				r := send(t, front, "agent", "GET", "/mcp/tools/list?unknown=1&cursor="+url.QueryEscape(cursor), "")
				var page struct {
					Tools      []struct{ Name string }
					NextCursor *string
				}
				if err := json.Unmarshal([]byte(r.Body), &page); err != nil || page.Tools == nil {
					t.Fatalf("page: %d %s", r.Status, r.Body)
				}
				for _, tool := range page.Tools {
					got = append(got, tool.Name)
				}
				pages++
				if page.NextCursor == nil {
					break
				}
				cursor = *page.NextCursor
			}
			if !slices.Equal(got, ids) || pages != max(1, (n+49)/50) {
				t.Errorf("%d pages with %d tools, want %d tools in order", pages, len(got), n)
			}
		})
	}
}

func TestHeadConditionalAndCompressed(t *testing.T) {
	s := newSite(t, echo)
	for i := range 40 {
		s.methods = append(s.methods, method(fmt.Sprint("content.", i)))
	}
	front := start(t, s)
	plain := send(t, front, "agent", "GET", "/mcp/tools/list", "", "Accept-Encoding", "identity")
	head := send(t, front, "agent", "HEAD", "/mcp/tools/list", "", "Accept-Encoding", "identity")
	plain.Header.Del("Date")
	head.Header.Del("Date")
	if head.Status != 200 || head.Body != "" || fmt.Sprint(head.Header) != fmt.Sprint(plain.Header) {
		t.Errorf("HEAD %d %v\nGET  %d %v", head.Status, head.Header, plain.Status, plain.Header)
	}
	zipped := send(t, front, "agent", "GET", "/mcp/tools/list", "", "Accept-Encoding", "gzip")
	if zipped.Header.Get("Content-Encoding") != "gzip" || len(zipped.Body)*2 > len(plain.Body) {
		t.Errorf("asked for gzip, got %v and %d bytes", zipped.Header, len(zipped.Body))
	}
	refused := send(t, front, "agent", "GET", "/mcp/tools/list", "", "Accept-Encoding", "gzip;q=0")
	if refused.Body != plain.Body {
		t.Error("gzip;q=0 was not respected")
	}
	for _, tag := range []string{plain.Header.Get("ETag"), "W/" + plain.Header.Get("ETag"), `"x", ` + zipped.Header.Get("ETag"), "*"} {
		if r := send(t, front, "agent", "GET", "/mcp/tools/list", "", "If-None-Match", tag); r.Status != http.StatusNotModified || r.Body != "" {
			t.Errorf("If-None-Match %s: %d", tag, r.Status)
		}
	}
	if described := send(t, front, "agent", "GET", "/mcp/tools/describe?name=content.echo", ""); !strings.Contains(plain.Body, strings.TrimSuffix(strings.TrimPrefix(described.Body, `{"tool":`), "}")) {
		t.Errorf("describe differs from list: %s", described.Body)
	}
}

func TestACursorKeepsItsPlaceWhenToolsChange(t *testing.T) {
	s := newSite(t)
	for i := range 6 {
		s.methods = append(s.methods, method(fmt.Sprint("content.", i)))
	}
	c := &clock{}
	front := start(t, s, func(o *bridge.Options) { o.PageSize, o.Now = 3, c.now })
	first := list(t, front, "agent")
	s.change(func() { s.methods = append([]string{method("content.new")}, s.methods[1:]...) })
	s.change(func() { s.methods = append([]string{method("content.newer")}, s.methods...) })
	c.advance(61e9)
	second := send(t, front, "agent", "GET", "/mcp/tools/list?cursor=Mw", "")
	for i := range 6 {
		name := fmt.Sprintf(`"name":"content.%d"`, i)
		if in := strings.Count(first.Body, name) + strings.Count(second.Body, name); in != 1 {
			t.Errorf("tool %d stands on %d pages\n%s\n%s", i, in, first.Body, second.Body)
		}
	}
}
