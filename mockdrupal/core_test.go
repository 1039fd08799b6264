package mockdrupal_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// outcome is what one request must get: a status, and words in the body or its headers.
type outcome struct {
	status int
	holds  string
}

func TestRequestsAsDrupalCoreTakesThem(t *testing.T) {
	site := smallSite()
	site.Title = `Tom & "Jerry"`
	site.Methods = append(site.Methods, fixtures.Method{ID: "test.a b", Usage: "Blank", Behaviour: fixtures.Behaviour{Kind: fixtures.Count}})
	s := start(t, site, mockdrupal.Options{})
	for _, c := range []struct {
		name, source string
		verb, path   string
		headers      []string
		want         outcome
	}{
		{"an unknown format", "Drupal FinalExceptionSubscriber", "POST", "/jsonrpc?_format=yaml", nil, outcome{401, "text/plain; charset=UTF-8|The website encountered an unexpected error."}},
		{"an empty format is unknown too", "Drupal FinalExceptionSubscriber", "POST", "/jsonrpc?_format=", nil, outcome{401, "text/plain; charset=UTF-8"}},
		{"two formats: the last", "PHP parse_str", "POST", "/jsonrpc?_format=html&_format=json", nil, outcome{401, "application/json"}},
		{"a list of formats", "Drupal NegotiationMiddleware, Symfony InputBag", "POST", "/jsonrpc?_format[]=json", nil, outcome{500, "error. Try again later.<br />"}},
		{"an argument with a dot or a blank before", "PHP parse_str", "POST", "/jsonrpc?+.format=json", nil, outcome{401, "application/json"}},
		{"XML keeps quotes", "Symfony XmlEncoder", "GET", "/user/logout?_format=xml", nil, outcome{403, "<message>This route can only be accessed by authenticated users.</message>"}},
		{"XML with markup is CDATA", "Symfony XmlEncoder", "GET", "/none?_format=xml&a=1", []string{"Referer", "http://a/?b&c"}, outcome{404, `<![CDATA[No route found for "GET `}},
		{"a missing address as it was sent, with its referer", "Symfony RouterListener", "GET", "/No%2Fne/?_format=json", []string{"Referer", "http://a/"},
			outcome{404, `\/No%2Fne\/\u0022 (from \u0022http:\/\/a\/\u0022)`}},
		{"an address is decoded twice", "Drupal PathProcessorDecode and Router", "GET", "/jsonrpc/methods/test%252Eecho", []string{"Authorization", agentBasic}, outcome{200, `"id":"test.echo"`}},
		{"an address that is not UTF-8", "Drupal Router, preg_match with u", "GET", "/jsonrpc/methods/%FF?_format=json", []string{"Authorization", agentBasic}, outcome{404, "No route found"}},
		{"a plus is a blank", "Drupal PathProcessorDecode", "GET", "/jsonrpc/methods/test.a+b", []string{"Authorization", agentBasic}, outcome{200, `"id":"test.a b"`}},
		{"slashes at the end", "Drupal RouteProvider", "GET", "/jsonrpc/methods//", []string{"Authorization", agentBasic}, outcome{200, `"data":[`}},
		{"an encoded slash at the end is none", "Drupal RouteProvider", "GET", "/jsonrpc/methods%2F", []string{"Authorization", agentBasic}, outcome{404, "Page not found"}},
		{"slashes within", "Drupal Router", "GET", "/jsonrpc//methods", []string{"Authorization", agentBasic}, outcome{404, "Page not found"}},
		{"slashes before lead away, with sorted arguments", "Drupal RedirectLeadingSlashesSubscriber, Symfony normalizeQueryString", "GET", "///jsonrpc?b=x+y&a={}", nil, outcome{302, "/jsonrpc?a=%7B%7D&b=x%20y"}},
		{"a bad token where there is nothing", "Drupal AuthenticationSubscriber, before routing", "GET", "/none", []string{"Authorization", "Bearer x"}, outcome{401, "access_denied"}},
		{"a bad token with a wrong verb", "Drupal AuthenticationSubscriber, before routing", "DELETE", "/jsonrpc", []string{"Authorization", "Bearer x"}, outcome{401, "access_denied"}},
		{"a bad token with OPTIONS", "Drupal OptionsRequestSubscriber, before authentication", "OPTIONS", "/jsonrpc/methods", []string{"Authorization", "Bearer x"}, outcome{200, "GET"}},
		{"OPTIONS with a call", "jsonrpc HttpController::preflight", "OPTIONS", "/jsonrpc?query=" + url.QueryEscape(whoami), []string{"Authorization", agentBasic}, outcome{204, "OPTIONS, GET, HEAD, POST"}},
		{"OPTIONS with an empty list of calls", "jsonrpc HttpController::preflight, all() on null", "OPTIONS", "/jsonrpc?query=[]", []string{"Authorization", agentBasic}, outcome{500, "text/html; charset=UTF-8|The website encountered an unexpected error."}},
		{"a wrong password with a wrong verb", "Drupal BasicAuth, as an anonymous caller", "DELETE", "/jsonrpc", []string{"Authorization", "Basic YTpi"}, outcome{405, "Client error"}},
		{"a token where no scheme is named", "simple_oauth, a global provider", "GET", "/user/login_status", []string{"Authorization", "Bearer agent-token"}, outcome{200, "text/plain; charset=UTF-8|1"}},
		{"a password where no scheme is named", "Drupal AuthenticationManager", "GET", "/user/login_status", []string{"Authorization", agentBasic}, outcome{403, "Access denied"}},
		{"the login form for an authenticated caller", "Drupal AccessDeniedSubscriber", "GET", "/user/login", []string{"Authorization", "Bearer agent-token"}, outcome{302, "/user/2|"}},
		{"the realm is markup", "Drupal BasicAuth, FormattableMarkup", "POST", "/jsonrpc", nil, outcome{401, `Basic realm="Tom &amp; &quot;Jerry&quot;"`}},
		{"base64 with what is none", "PHP base64_decode", "GET", "/jsonrpc/methods/test.echo", []string{"Authorization", "Basic YWdl\tbnQ6YWdl-bnQtcGFzcw====="}, outcome{200, `"test.echo"`}},
		{"HEAD by override has no body", "Symfony Response::prepare", "POST", "/jsonrpc/methods", []string{"Authorization", agentBasic, "X-HTTP-Method-Override", "head"}, outcome{200, "application/json|$"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, body := do(t, c.verb, s.URL+c.path, "", c.headers...)
			got := strings.Join([]string{res.Header.Get("WWW-Authenticate"), res.Header.Get("Allow"), res.Header.Get("Location"), res.Header.Get("Content-Type")}, "|") + "|" + body + "$"
			must.Expect(t, res.StatusCode == c.want.status && strings.Contains(got, c.want.holds),
				"%s %s: %d %s\nwant %d with %s, by %s", c.verb, c.path, res.StatusCode, got, c.want.status, c.want.holds, c.source)
		})
	}
}

func TestCallsAsTheJSONRPCModuleTakesThem(t *testing.T) {
	site := smallSite()
	site.Content = fixtures.Content{
		"node": {fixtures.Raw(`{"id":"1","label":"One","uuid":"u"}`)},
		"news": {fixtures.Raw(`{"nid":1,"text":"one"}`), fixtures.Raw(`{"nid":2,"refused":"Node {nid} is a page"}`)},
	}
	site.Methods = append(site.Methods,
		fixtures.Method{ID: "test.types", Usage: "Types", Params: []fixtures.Param{{Name: "any", Schema: fixtures.Raw(`{}`)}}, Behaviour: fixtures.Behaviour{Kind: fixtures.Types}},
		fixtures.Method{ID: "test.entity", Usage: "Entity", Params: []fixtures.Param{{Name: "e", Factory: "entity"}}, Behaviour: fixtures.Behaviour{Kind: fixtures.Entity, By: "e"}},
		fixtures.Method{ID: "test.get", Usage: "Get", Params: []fixtures.Param{{Name: "nid", Schema: fixtures.Raw(`{}`)}},
			Behaviour: fixtures.Behaviour{Kind: fixtures.Get, List: "news", Match: "nid", By: "nid", Field: "text", Text: "No node {nid}"}},
		fixtures.Method{ID: "test.list", Usage: "List", Params: []fixtures.Param{{Name: "page", Factory: "pagination"}},
			Behaviour: fixtures.Behaviour{Kind: fixtures.Lookup, List: "news", Page: "page", Fields: []string{"nid"}}})
	s := start(t, site, mockdrupal.Options{})
	request := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	const other = `{"jsonrpc":"2","id":1,"method":"test.count"}`
	for _, c := range []struct {
		name, source, body string
		want               outcome
	}{
		{"a version that is numerically the same", "json-schema EnumConstraint", other, outcome{200, `"result":1`}},
		{"but not in a batch", "RpcRequestFactory::isBatchRequest", "[" + other + "]", outcome{400, `"code":-32600,"message":"Invalid Request","data":"Every request must include a \u0027jsonrpc\u0027 member with a value of 2.0."`}},
		{"what cannot be encoded", "Drupal Json::encode, CacheableJsonResponse::fromJsonString", request("test.types", `{"any":1e400}`), outcome{200, "^$"}},
		{"an id that cannot be encoded", "Drupal Json::encode", `{"jsonrpc":"2.0","id":1e400,"method":"no.such"}`, outcome{400, "^$"}},
		{"content without a uuid", "Drupal SQL condition", request("test.entity", `{"e":{"type":"user"}}`), outcome{400, `Query condition \u0027users.uuid IN ()\u0027 cannot be empty.`}},
		{"configuration without a uuid", "Drupal configuration query", request("test.entity", `{"e":{"type":"node_type"}}`), outcome{400, `"data":"The requested entity could not be found."`}},
		{"an entity of no type", "Drupal EntityTypeManager", request("test.entity", `{"e":{}}`), outcome{400, `The \u0022\u0022 entity type does not exist.`}},
		{"by an integer as text", "Drupal EntityStorageBase::load", request("test.get", `{"nid":"1"}`), outcome{200, `"result":"one"`}},
		{"by a float", "PHP array_flip", request("test.get", `{"nid":1.0}`), outcome{200, `"data":"No node 1"`}},
		{"by a list", "PHP array offsets", request("test.get", `{"nid":[1]}`), outcome{200, `"code":-32603`}},
		{"refused for itself", "ArticleToMarkdown", request("test.get", `{"nid":2}`), outcome{200, `"data":"Node 2 is a page"`}},
		{"no items", "SQLite LIMIT 0", request("test.list", `{"page":{"limit":0,"offset":0}}`), outcome{200, `"result":[]`}},
		{"an empty page is none", "ListArticles", request("test.list", `{"page":{}}`), outcome{200, `"result":[{"nid":1},{"nid":2}]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := call(t, s, "agent", c.body)
			must.Expect(t, status == c.want.status && strings.Contains("^"+body+"$", c.want.holds),
				"%s: %d %s\nwant %d with %s, by %s", c.body, status, body, c.want.status, c.want.holds, c.source)
		})
	}
}

func TestLoginIsCountedApartFromBasic(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{Flood: true})
	login := func(password string) outcome {
		res, body := do(t, "POST", s.URL+"/user/login?_format=json", `{"name":"agent","pass":"`+password+`"}`)
		return outcome{res.StatusCode, body}
	}
	for range 5 {
		got := login("wrong")
		must.Assert(t, got.status == 400, "a wrong password: %v", got)
	}
	if got := login("agent-pass"); got.status != 403 || !strings.Contains(got.holds, "Too many failed login attempts from your IP address.") {
		t.Errorf("the right one after five failures: %v", got)
	}
	if status, body := call(t, s, "agent", whoami); status != 200 {
		t.Errorf("Basic meanwhile: %d %s", status, body)
	}
	for range 50 {
		do(t, "POST", s.URL+"/user/login?_format=json", `{"name":"nobody","pass":"x"}`)
	}
	res, body := do(t, "POST", s.URL+"/user/login?_format=json", `{"name":"admin","pass":"admin-pass"}`)
	must.Expect(t, res.StatusCode == 403 && strings.Contains(body, "Access is blocked because of IP based flood prevention."),
		"after 50 failures of the address: %d %s", res.StatusCode, body)
}
