package mockdrupal_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
)

// nonconforming is what the recorded site sends in place of a result that breaks its output.
const nonconforming = `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal Error","data":"Adaptor Drupal\\jsonrpc\\Shaper\\RpcResponseFactory returned invalid output data: []"}}`

// The module validates the result of a single request against the method's output, by its own schema of a response.
func TestResultsAreValidated(t *testing.T) {
	for _, c := range []struct {
		name, output, result string
		want                 string // "": the result
	}{
		{"an object for a string", `{"type":"string"}`, `{"not":"a string"}`, nonconforming},
		{"a string", `{"type":"string"}`, `"x"`, ""},
		{"PHP's empty array for an object", `{"type":"object"}`, `[]`, ""},
		{"PHP's empty array for a list", `{"type":"array"}`, `{}`, ""},
		{"a list for an object", `{"type":"object"}`, `[1]`, nonconforming},
		{"an integer for a number", `{"type":"number"}`, `1`, ""},
		{"a float for an integer", `{"type":"integer"}`, `1.0`, nonconforming},
		{"beyond PHP's integers", `{"type":"integer"}`, `18446744073709551616`, nonconforming},
		{"within", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`, `{"a":["x",1]}`, nonconforming},
		{"a part of the response", `{"$ref":"#/properties/id"}`, `"x"`, ""},
		{"a list against a part of the response", `{"$ref":"#/properties/id"}`, `[1]`, nonconforming},
		{"no such part", `{"$ref":"#/definitions/x"}`, `"x"`, "could not resolve fragment: #\\/definitions\\/x"},
		{"a multiple of 0", `{"multipleOf":0}`, `1`, "The website encountered an unexpected error."},
		{"no output", ``, `{"any":"thing"}`, ""},
		{"null where it is allowed", `{"type":["object","null"]}`, `null`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := smallSite()
			site.Methods = append(site.Methods, fixtures.Method{ID: "test.value", Usage: "Value", Unchecked: true, Output: fixtures.Raw(c.output),
				Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(c.result)}})
			s := start(t, site, mockdrupal.Options{})
			const one = `{"jsonrpc":"2.0","id":1,"method":"test.value"}`
			status, body := call(t, s, "agent", one)
			refused := status == http.StatusInternalServerError
			must.Expect(t, refused == (c.want != "") && strings.Contains(body, c.want), "%d %s", status, body)
			status, body = call(t, s, "agent", "["+one+"]")
			must.Expect(t, status == http.StatusOK && strings.Contains(body, `"result":`), "in a batch, which is not validated: %d %s", status, body)
			must.Do(t, s.SetQuirk(quirk.LenientOutput, true))
			status, body = call(t, s, "agent", one)
			must.Expect(t, status == http.StatusOK && strings.Contains(body, `"result":`), "with %s: %d %s", quirk.LenientOutput, status, body)
		})
	}
}

// An object that JSON has as a text, as a TranslatableMarkup, is no text.
func TestAnObjectIsNoText(t *testing.T) {
	site := must.Get(fixtures.Builtin("transcripts"))(t)
	s := start(t, site, mockdrupal.Options{})
	const one = `{"jsonrpc":"2.0","method":"fx.returnMarkup","id":11}`
	status, body := call(t, s, "agent", one)
	must.Expect(t, status == 500 && body == nonconforming, "%d %s", status, body)
	status, body = call(t, s, "agent", "["+one+"]")
	must.Expect(t, status == 200 && strings.Contains(body, "Hello"), "in a batch: %d %s", status, body)
}

// A parameter's schema of which the library throws an exception fails the request, in the words of the exception.
func TestSchemasThatThrow(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		status       int
		says         string
	}{
		{"an unknown type", `{"type":"entity_reference"}`, 400, `"code":-32603,"message":"Internal Error","data":"5 is an invalid type for entity_reference"`},
		{"no such definition", `{"$ref":"#/definitions/x"}`, 400, `"code":-32603`},
		{"another document", `{"$ref":"https://example.org/x.json"}`, 400, `"code":-32603`},
		{"a number under a limit alone", `{"type":"number","exclusiveMinimum":0}`, 400, "Use of exclusiveMinimum requires presence of minimum"},
		{"a format for texts", `{"format":"phone"}`, 400, `"code":-32602,"message":"Invalid Params","data":"The n parameter does not conform to the parameter schema. preg_match(): Argument #2 ($subject) must be of type string, int given"`},
		{"a multiple of 0", `{"multipleOf":0}`, 500, "The website encountered an unexpected error."},
		{"a number", `{"type":"number"}`, 200, `"result"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			site := smallSite()
			site.Methods = append(site.Methods, fixtures.Method{ID: "test.n", Usage: "N", Unchecked: true, Behaviour: fixtures.Behaviour{Kind: fixtures.Echo},
				Params: []fixtures.Param{{Name: "n", Schema: fixtures.Raw(c.schema)}}})
			status, body := call(t, start(t, site, mockdrupal.Options{}), "agent", `{"jsonrpc":"2.0","id":1,"method":"test.n","params":{"n":5}}`)
			must.Expect(t, status == c.status && strings.Contains(body, c.says),
				"%d %s, expected %d with %s", status, body, c.status, c.says)
		})
	}
}

// A parameter may have a schema and a factory: the one validates, the other converts.
func TestSchemaAndFactory(t *testing.T) {
	site := smallSite()
	site.Content = fixtures.Content{"node": {fixtures.Raw(`{"id":"1","label":"First","uuid":"u"}`)}}
	site.Methods = append(site.Methods, fixtures.Method{ID: "test.load", Usage: "Loads", Behaviour: fixtures.Behaviour{Kind: fixtures.Entity, By: "entity"},
		Params: []fixtures.Param{{Name: "entity", Factory: "entity", Schema: fixtures.Raw(`{"type":"object","required":["uuid"]}`)}}})
	s := start(t, site, mockdrupal.Options{})
	for params, want := range map[string]string{`{"entity":{"type":"node","uuid":"u"}}`: `"label":"First"`, `{"entity":{"type":"node"}}`: "The property uuid is required"} {
		_, body := call(t, s, "agent", `{"jsonrpc":"2.0","id":1,"method":"test.load","params":`+params+`}`)
		must.Expect(t, strings.Contains(body, want), "%s: %s", params, body)
	}
	_, body := do(t, "GET", s.URL+"/jsonrpc/methods/test.load", "", "Authorization", agentBasic)
	must.Expect(t, strings.Contains(body, `"attributes":{"schema":{"type":"object","required":["uuid"]},"factory":"`), "%v", body)
}

// The module's parameter bag takes every parameter for one by name, so that a behaviour that reads one by position fails.
func TestParametersByPositionCannotBeRead(t *testing.T) {
	site := smallSite()
	site.Methods = append(site.Methods, fixtures.Method{ID: "test.greet", Usage: "Greets", ByPosition: true, Params: []fixtures.Param{{Name: "0", Schema: fixtures.Raw(`{}`)}},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Concat, Text: "Hello ", By: "0"}})
	status, body := call(t, start(t, site, mockdrupal.Options{}), "agent", `{"jsonrpc":"2.0","id":7,"method":"test.greet","params":["Ann"]}`)
	want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal Error","data":"The parameters are by-name. String key required."}}`
	must.Expect(t, status == 200 && body == want, "%d %s", status, body)
}

// A method's headers are sent in lower case, but for those that Drupal sets itself afterwards.
func TestHeadersOfAMethod(t *testing.T) {
	site := smallSite()
	site.Methods[0].ResponseHeaders = map[string]string{"X-Test": "1", "Cache-Control": "max-age=9", "Expires": "0", "ETag": "x", "Last-Modified": "x", "Vary": "x", "Content-Type": "text/plain"}
	s := start(t, site, mockdrupal.Options{})
	res, _ := do(t, "POST", s.URL+"/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"test.echo"}`, "Authorization", agentBasic)
	if res.Header.Get("X-Test") != "1" || res.Header.Get("Cache-Control") != "must-revalidate, no-cache, private" || len(res.Header["Content-Type"]) != 1 ||
		res.Header.Get("Content-Type") != "text/plain" || res.Header.Get("Etag")+res.Header.Get("Last-Modified")+res.Header.Get("Vary") != "" {
		t.Error(res.Header)
	}
}

// A caller who is refused costs no more memory than a megabyte, whatever it sends.
func TestBodiesOfUnknownCallers(t *testing.T) {
	d := must.Get(mockdrupal.New(smallSite(), mockdrupal.Options{}))(t)
	for _, c := range []struct {
		password string
		status   int
		read     int64
	}{{"wrong", 403, 1 << 20}, {"", 401, 1 << 20}, {"agent-pass", 200, 8 << 20}} {
		body := `{"jsonrpc":"2.0","id":1,"method":"test.count","x":"` + strings.Repeat("x", 8<<20)
		sent := strings.NewReader(body[:8<<20-2] + `"}`)
		r := httptest.NewRequest("POST", "/jsonrpc", sent)
		if c.password != "" {
			r.SetBasicAuth("agent", c.password)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		if read := int64(8<<20 - sent.Len()); w.Code != c.status || read != c.read {
			t.Errorf("with the password %q: %d after %d bytes, expected %d after %d", c.password, w.Code, read, c.status, c.read)
		}
	}
}

func TestLinksAsSymfonyMakesThem(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	r, _ := http.NewRequest("GET", s.URL+"/index.php/jsonrpc/methods", nil)
	r.Header.Set("Authorization", agentBasic)
	r.Host = "Example.ORG:80"
	res := must.Get(http.DefaultClient.Do(r))(t)
	defer res.Body.Close()
	body := make([]byte, 1<<16)
	n, _ := res.Body.Read(body)
	want := `"self":"http:\/\/example.org\/index.php\/jsonrpc\/methods\/test.echo"`
	must.Expect(t, strings.Contains(string(body[:n]), want), "no %s in %s", want, body[:n])
}

func TestVersionsOfDrupal(t *testing.T) {
	site := smallSite()
	site.Methods = append(site.Methods, fixtures.Method{ID: "test.entity", Usage: "Entity", Params: []fixtures.Param{{Name: "e", Factory: "entity"}},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Entity, By: "e"}})
	for _, core := range mockdrupal.Cores() {
		s := start(t, site, mockdrupal.Options{Drupal: core.Version})
		res, _ := do(t, "GET", s.URL+"/jsonrpc/methods", "")
		if found, ok := mockdrupal.DetectCore(res.Header); !ok || found.Version != core.Version && found.Generator != core.Generator {
			t.Errorf("%s is taken for %+v: %v", core.Version, found, res.Header)
		}
		must.Equal(t, res.Header.Get("Content-Type"), "text/html; charset="+core.Charset, "Content-Type of %s", core.Version)
		entity, said := `{"jsonrpc":"2.0","id":1,"method":"test.entity","params":{"e":{"type":"node:page"}}}`, `The \u0022node:page\u0022 entity type does not exist.`
		if core.BundleTypes {
			said = "Bundle entity types are not supported directly."
		}
		_, body := call(t, s, "agent", entity)
		must.Expect(t, strings.Contains(body, said), "%s: %s, expected %s", core.Version, body, said)
		want := "MISS"
		if core.ErrorStatus {
			want = "UNCACHEABLE (401, sub-request: MISS)"
		}
		must.Equal(t, res.Header.Get("X-Drupal-Dynamic-Cache"), want, "X-Drupal-Dynamic-Cache of %s", core.Version)
		if redirect, _ := do(t, "GET", s.URL+"//jsonrpc", ""); redirect.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: a redirect has %s", core.Version, redirect.Header.Get("Content-Type"))
		}
	}
	must.Refuse(mockdrupal.New(smallSite(), mockdrupal.Options{Drupal: "9"}))(t, "10.6, 11.3, 11.4, 12")
}

// What the lines of the jsonrpc module do differently.
func TestLinesOfTheJSONRPCModule(t *testing.T) {
	const null = `{"jsonrpc":"2.0","id":1,"method":"test.null"}`
	preflight := []string{"Origin", "https://page.example", "Access-Control-Request-Method", "POST"}
	for _, line := range []int{0, mockdrupal.Line3, mockdrupal.Line2} {
		two := line == mockdrupal.Line2
		site := smallSite()
		site.Auth.JSONRPC = append(site.Auth.JSONRPC, "cookie")
		site.Methods = append(site.Methods, fixtures.Method{ID: "test.null", Usage: "Null",
			Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw("null")}})
		s := start(t, site, mockdrupal.Options{JSONRPC: line})

		res, _ := do(t, "OPTIONS", s.URL+"/jsonrpc", "", preflight...)
		must.Expect(t, res.StatusCode == http.StatusUnauthorized,
			"line %d: a preflight without credentials: %d %v", line, res.StatusCode, res.Header)
		asked := append([]string{"Authorization", agentBasic}, preflight...)
		res, _ = do(t, "OPTIONS", s.URL+"/jsonrpc?query="+url.QueryEscape(null), "", asked...)
		must.Expect(t, res.StatusCode == 204 && res.Header.Get("Allow") == "OPTIONS, GET, HEAD, POST" && res.Header.Get("Access-Control-Allow-Origin") == "",
			"line %d: a preflight: %d %v", line, res.StatusCode, res.Header)
		if res, _ := do(t, "OPTIONS", s.URL+"/jsonrpc/methods", "", asked...); res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("line %d: a preflight of an address without OPTIONS: %d", line, res.StatusCode)
		}
		if res, _ := do(t, "OPTIONS", s.URL+"/jsonrpc", ""); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("line %d: OPTIONS that is no preflight: %d", line, res.StatusCode)
		}
		if res, _ := do(t, "POST", s.URL+"/jsonrpc", null, preflight...); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("line %d: the headers of a preflight on POST: %d", line, res.StatusCode)
		}

		status, body := call(t, s, "agent", null)
		failed := strings.Contains(body, "-32603")
		must.Expect(t, status == 200 && failed == two, "line %d: a method that returns null: %d %s", line, status, body)

		login, _ := do(t, "POST", s.URL+"/user/login?_format=json", `{"name":"agent","pass":"agent-pass"}`)
		must.Assert(t, len(login.Cookies()) > 0, "line %d: a login opens no session: %d", line, login.StatusCode)
		session := login.Cookies()[0]
		cookie := []string{"Cookie", session.Name + "=" + session.Value}
		res, _ = do(t, "GET", s.URL+"/jsonrpc/methods", "", cookie...)
		must.Expect(t, res.StatusCode == http.StatusOK, "line %d: discovery by a session: %d", line, res.StatusCode)
		res, _ = do(t, "POST", s.URL+"/jsonrpc", null, cookie...)
		accepted := res.StatusCode == http.StatusOK
		must.Expect(t, accepted != two, "line %d: a session where the site names cookie: %d", line, res.StatusCode)
	}
	must.Refuse(mockdrupal.New(smallSite(), mockdrupal.Options{JSONRPC: 4}))(t, "line 4", "line 4 is accepted")
}
