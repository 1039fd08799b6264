package scenario

import (
	"context"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// Cause is what is wrong with a request; the same cause has the same code on every endpoint.
type Cause string

// Causes that several requests share, and those whose code a clause names.
const (
	wrongVerb      Cause = "a verb that the endpoint does not take"
	noCredentials  Cause = "no credentials"
	badCredentials Cause = "credentials of no account"
	noDiscovery    Cause = "a caller who may not discover tools"
	MissingName    Cause = "a missing name"
	UnknownTool    Cause = "an unknown tool"
	MalformedDoc   Cause = "a body that is no JSON"
	BrokenRule     Cause = "arguments that break the inputSchema"
	FailedMethod   Cause = "a method that failed"
	Other          Cause = "" // stands alone
)

// refusal is a request that a bridge ought to refuse. Query and body may contain {known}, {hidden}, {denied}, {strict},
// {failing} and {throwing} in place of tools; without a mock, a request with one of these is not sent.
type refusal struct {
	What   string
	Cause  Cause
	Caller check.Identity
	method string // "" is GET
	path   string
	query  string
	body   string
	header http.Header
	fault  *mockdrupal.Fault // armed for this request
}

var (
	AsNobody = http.Header{"Authorization": {"Basic " + client.Basic(check.WrongCredentials.User, check.WrongCredentials.Password)}}
	AsText   = http.Header{"Content-Type": {"text/plain"}}
	asForm   = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	asAny    = http.Header{"Accept": {"*/*"}} // in place of application/json: frameworks choose the form of an error by it
	asNone   = http.Header{"Accept": nil}

	asBearer  = http.Header{"Authorization": {"Bearer no-such-token"}}
	asSession = http.Header{"Cookie": {"SESS0123456789abcdef0123456789abcdef=no-such-session"}}
)

// refusals are requests of every sort that a bridge refuses, on all three endpoints.
var refusals = []refusal{
	{"list with a malformed cursor", Other, check.Agent, "", check.ListPath, "cursor=%00%FF", "", nil, nil},
	{"list with a cursor that is a list", Other, check.Agent, "", check.ListPath, "cursor[]=x", "", nil, nil},
	{"list with two cursors", Other, check.Agent, "", check.ListPath, "cursor=%21&cursor=%21", "", nil, nil},
	{"list by POST", wrongVerb, check.Agent, "POST", check.ListPath, "", "{}", nil, nil},
	{"list by PUT", wrongVerb, check.Agent, "PUT", check.ListPath, "", "", asAny, nil},
	{"list by PATCH", wrongVerb, check.Agent, "PATCH", check.ListPath, "", "", nil, nil},
	{"list by DELETE", wrongVerb, check.Agent, "DELETE", check.ListPath, "", "", nil, nil},
	{"list without credentials", noCredentials, check.Anonymous, "", check.ListPath, "", "", asAny, nil},
	{"list with credentials of no account", badCredentials, check.Anonymous, "", check.ListPath, "", "", AsNobody, nil},
	{"list with a token of no account", Other, check.Anonymous, "", check.ListPath, "", "", asBearer, nil},
	{"list with a session of no account", Other, check.Anonymous, "", check.ListPath, "", "", asSession, nil},
	{"list by one who may not discover", noDiscovery, check.Outsider, "", check.ListPath, "", "", nil, nil},

	{"describe without a name", MissingName, check.Agent, "", check.DescribePath, "", "", nil, nil},
	{"describe with an empty name", MissingName, check.Agent, "", check.DescribePath, "name=", "", nil, nil},
	{"describe with a list of names", Other, check.Agent, "", check.DescribePath, "name[]=x", "", nil, nil},
	{"describe with two names", Other, check.Agent, "", check.DescribePath, "name=" + NoSuchTool + "&name=no.such.other", "", nil, nil},
	{"describe with a name that is no UTF-8", Other, check.Agent, "", check.DescribePath, "name=%FF%FE", "", nil, nil},
	{"describe of an unknown tool", UnknownTool, check.Agent, "", check.DescribePath, "name=" + NoSuchTool, "", nil, nil},
	{"describe of markup", UnknownTool, check.Agent, "", check.DescribePath, "name=%3Cb%3E%22%5C", "", asAny, nil},
	{"describe of a method that is no tool", UnknownTool, check.Agent, "", check.DescribePath, "name={hidden}", "", nil, nil},
	{"describe by POST", wrongVerb, check.Agent, "POST", check.DescribePath, "name=" + NoSuchTool, "{}", nil, nil},
	{"describe by PUT", wrongVerb, check.Agent, "PUT", check.DescribePath, "name=" + NoSuchTool, "", nil, nil},
	{"describe by DELETE", wrongVerb, check.Agent, "DELETE", check.DescribePath, "name=" + NoSuchTool, "", nil, nil},
	{"describe without credentials", noCredentials, check.Anonymous, "", check.DescribePath, "name=" + NoSuchTool, "", nil, nil},
	{"describe with credentials of no account", badCredentials, check.Anonymous, "", check.DescribePath, "name=" + NoSuchTool, "", AsNobody, nil},
	{"describe by one who may not discover", noDiscovery, check.Outsider, "", check.DescribePath, "name=" + NoSuchTool, "", nil, nil},

	{"invoke with an empty body", Other, check.Agent, "POST", check.InvokePath, "", " ", nil, nil},
	{"invoke with words", MalformedDoc, check.Agent, "POST", check.InvokePath, "", "hello", nil, nil},
	{"invoke cut short", MalformedDoc, check.Agent, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool, asAny, nil},
	{"invoke with a list", Other, check.Agent, "POST", check.InvokePath, "", `[]`, nil, nil},
	{"invoke with null", Other, check.Agent, "POST", check.InvokePath, "", `null`, nil, nil},
	{"invoke without a name", MissingName, check.Agent, "POST", check.InvokePath, "", `{"arguments":{}}`, nil, nil},
	{"invoke with a list as name", MissingName, check.Agent, "POST", check.InvokePath, "", `{"name":["x"],"arguments":{}}`, nil, nil},
	{"invoke without arguments", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `"}`, nil, nil},
	{"invoke with a text as arguments", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":"x"}`, nil, nil},
	{"invoke with duplicate members", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"a.b","name":"` + NoSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke with deep arguments", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, nil, nil},
	{"invoke with half of a surrogate pair", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":{"x":"\ud83d"}}`, nil, nil},
	{"invoke of an unknown tool", UnknownTool, check.Agent, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke of markup", UnknownTool, check.Agent, "POST", check.InvokePath, "", `{"name":"<b>\"\\","arguments":{}}`, asNone, nil},
	{"invoke by GET", wrongVerb, check.Agent, "GET", check.InvokePath, "", "", nil, nil},
	{"invoke by PUT", wrongVerb, check.Agent, "PUT", check.InvokePath, "", "{}", nil, nil},
	{"invoke by PATCH", wrongVerb, check.Agent, "PATCH", check.InvokePath, "", "{}", nil, nil},
	{"invoke by DELETE", wrongVerb, check.Agent, "DELETE", check.InvokePath, "", "", nil, nil},
	{"invoke as text", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":{}}`, AsText, nil},
	{"invoke as a form", Other, check.Agent, "POST", check.InvokePath, "", `name=` + NoSuchTool, asForm, nil},
	{"invoke without credentials", noCredentials, check.Anonymous, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke with credentials of no account", badCredentials, check.Anonymous, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":{}}`, AsNobody, nil},
	{"invoke by one who may not use JSON-RPC", Other, check.NoRPC, "POST", check.InvokePath, "", `{"name":"` + NoSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke of a method that is no tool", UnknownTool, check.Agent, "POST", check.InvokePath, "", `{"name":"{hidden}","arguments":{}}`, nil, nil},
	{"invoke of a tool that the caller may not run", Other, check.Discoverer, "POST", check.InvokePath, "", `{"name":"{denied}","arguments":{}}`, nil, nil},
	{"invoke with a parameter missing", BrokenRule, check.Agent, "POST", check.InvokePath, "", `{"name":"{strict}","arguments":{}}`, nil, nil},
	{"invoke of a method that fails", FailedMethod, check.Agent, "POST", check.InvokePath, "", `{"name":"{failing}","arguments":{}}`, nil, nil},
	{"invoke of a method that throws", FailedMethod, check.Agent, "POST", check.InvokePath, "", `{"name":"{throwing}","arguments":{}}`, nil, nil},
	{"invoke that the site denies, of a tool that it shows", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"{known}","arguments":{}}`, nil, &mockdrupal.Fault{Route: route.JSONRPC, Kind: fault.Failure, Body: `{"code":-32600,"message":"Invalid Request","data":"Access Denied: The 'access content' permission is required."}`}},
	{"invoke while the site sends a page", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"{known}","arguments":{}}`, nil, &mockdrupal.Fault{Route: route.JSONRPC, Kind: fault.HTML, Status: 503}},
	{"invoke while the site resets connections", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"{known}","arguments":{}}`, nil, &mockdrupal.Fault{Route: route.JSONRPC, Kind: fault.Reset}},
	{"invoke while the site sends garbage", Other, check.Agent, "POST", check.InvokePath, "", `{"name":"{known}","arguments":{}}`, nil, &mockdrupal.Fault{Route: route.JSONRPC, Kind: fault.Garbage}},
}

// SentRefusal is a response to one of the refusals.
type SentRefusal struct {
	refusal
	*check.Response
}

// SendRefusals sends every refusal that this run can send.
func SendRefusals(ctx context.Context, t *check.T) []SentRefusal {
	t.As(check.Agent).List(ctx).MustSucceed()
	tools := FillPlaceholders(ctx, t)
	possible := slices.DeleteFunc(slices.Clone(refusals), func(r refusal) bool {
		_, known := tools.In(r.query)
		_, also := tools.In(r.body)
		return !known || !also || !t.Knows(r.Caller) || r.fault != nil && t.Drupal == nil
	})
	possible = Sampled(t, possible)
	quiet := slices.DeleteFunc(slices.Clone(possible), refusal.duringFault)
	responses := t.Table(len(quiet), func(i int) *check.Response { return quiet[i].send(ctx, t, tools) }).Shared(func(i int) string { return quiet[i].What })
	all := make([]SentRefusal, len(possible))
	for i, r := range possible {
		all[i].refusal = r
		if !r.duringFault() {
			all[i].Response = responses.Response(i)
			continue
		}
		disarm := t.Drupal.Arm(*r.fault)
		all[i].Response = r.send(ctx, t, tools)
		disarm()
	}
	if slices.ContainsFunc(possible, refusal.duringFault) {
		WaitRecovered(ctx, t, MustRun(ctx, t))
	}
	return all
}

// duringFault reports whether the site fails meanwhile. Those refusals stand last in their list.
func (r refusal) duringFault() bool { return r.fault != nil }

// send sends the request.
func (r refusal) send(ctx context.Context, t *check.T, tools Placeholders) *check.Response {
	query, _ := tools.In(r.query)
	q := check.Request{Method: r.method, Path: r.path, Raw: query, Header: r.header}
	if r.body != "" {
		q.Show, _ = tools.In(r.body)
		q.Body = strings.NewReader(q.Show)
	}
	return t.As(r.Caller).Send(ctx, q)
}

// portable are the names that can stand in a query and in JSON as they are.
var portable = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// Placeholders are the tools that stand for the names in braces.
type Placeholders map[string]string

// FillPlaceholders finds them on the site; without a site there are none.
func FillPlaceholders(ctx context.Context, t *check.T) Placeholders {
	if t.Drupal == nil {
		return nil
	}
	s := Placeholders{"{known}": KnownTool(ctx, t)}
	for i := range t.Drupal.Site().Methods {
		m := &t.Drupal.Site().Methods[i]
		if m.MCP == nil && m.Behaviour.Kind == fixtures.Value && portable.MatchString(m.ID) && t.Drupal.Site().MayRun(check.UserOf(t.Drupal.Site(), check.Agent), m) {
			s["{hidden}"] = t.ToolName(m.ID)
		}
	}
	discoverable := Samples(t, check.Discoverer, SucceedingKinds...)
	for _, tool := range Samples(t, check.Agent, append([]fixtures.Kind{fixtures.Fail, fixtures.Throw}, SucceedingKinds...)...) {
		if !portable.MatchString(tool.Name) {
			continue
		}
		switch kind := tool.Behaviour.Kind; {
		case kind == fixtures.Throw:
			s["{throwing}"] = tool.Name
		case kind == fixtures.Fail && len(tool.Params) > 0 && strings.Contains(string(tool.Params[0].Resolved()), `"type":"string"`):
			s["{picky}"], s["{text}"] = tool.Name, tool.Params[0].Name
		case kind == fixtures.Fail && tool.Fails().Code < -32603 && len(tool.Arguments) == 0:
			s["{failing}"] = tool.Name
		case kind == fixtures.Echo && len(tool.Arguments) == 1 && len(tool.Params) == 1 && strings.Contains(string(tool.Params[0].Resolved()), `"type":"string"`):
			s["{strict}"], s["{words}"] = tool.Name, tool.Params[0].Name
		case len(tool.Access) > 0 && len(tool.Arguments) == 0 && !hasSample(discoverable, tool.ID):
			s["{denied}"] = tool.Name
		}
	}
	return s
}

func hasSample(list []Sample, id string) bool {
	return slices.ContainsFunc(list, func(s Sample) bool { return s.ID == id })
}

// In puts the tools into a text; ok is false when the site has none for one of its placeholders.
func (s Placeholders) In(text string) (filled string, ok bool) {
	for word, name := range s {
		text = strings.ReplaceAll(text, word, name)
	}
	for _, word := range []string{"{known}", "{hidden}", "{denied}", "{strict}", "{failing}", "{throwing}", "{picky}"} {
		if strings.Contains(text, word) {
			return "", false
		}
	}
	return text, true
}

// LookalikePage returns the headers of a request from a web page whose host begins with the bridge's and has an ending. A bridge that
// compares only the beginning of the Origin with the Host shows it where the Host has no port, as browsers leave the usual one out:
// so the Host is without one, unless the bridge refuses that.
func LookalikePage(t *check.T, ending string, send func(http.Header) *check.Response) http.Header {
	page := http.Header{"Host": {t.Hostname()}}
	if !send(page.Clone()).Succeeded() {
		page.Del("Host")
	}
	scheme, _, _ := strings.Cut(t.URL, "://")
	page.Set("Origin", scheme+"://"+t.Hostname()+ending)
	return page
}

// SuffixPage returns the headers of a request from a web page whose host ends with the bridge's, where the bridge's URL has an address:
// to a parser of URLs as browsers have it, no name ends with an address. So the Host is localhost; nil where the bridge refuses that.
func SuffixPage(t *check.T, beginning string, send func(http.Header) *check.Response) http.Header {
	port, isHost := strings.CutPrefix(t.Host(), t.Hostname())
	page := http.Header{"Host": {"localhost" + port}}
	if net.ParseIP(t.Hostname()) == nil || !isHost || !send(page.Clone()).Succeeded() {
		return nil
	}
	scheme, _, _ := strings.Cut(t.URL, "://")
	page.Set("Origin", scheme+"://"+beginning+"localhost"+port)
	return page
}

// RefusesKnown reports whether the bridge refuses its list to a caller whom the real site, which was read, knows. A 403 is right where
// the caller may not discover tools; then invoke is still open to it, and tells it from wrong credentials.
func RefusesKnown(ctx context.Context, t *check.T, r *check.Response, who check.Identity) bool {
	if t.Drupal != nil || t.Site == nil || r.Status != http.StatusUnauthorized && r.Status != http.StatusForbidden ||
		t.Site.Unknown(who) != "" || !t.Site.MayUse(who) {
		return false
	}
	if r.Status == http.StatusUnauthorized {
		return true
	}
	invoked := t.As(who).Invoke(ctx, NoSuchTool, check.Args{})
	return (invoked.Status == http.StatusUnauthorized || invoked.Status == http.StatusForbidden) &&
		match.SameBody(invoked, t.With("nobody", check.WrongCredentials).Invoke(ctx, NoSuchTool, check.Args{}))
}

// RefusalsLast is how long a bridge may remember that the site refused a caller.
const RefusalsLast = 6 * time.Second
