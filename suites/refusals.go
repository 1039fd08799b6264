package suites

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// cause is what is wrong with a request; the same cause has the same code on every endpoint.
type cause string

// Causes that several requests share, and those whose code a clause names.
const (
	wrongVerb    cause = "a verb that the endpoint does not take"
	noSignIn     cause = "nobody signed in"
	badSignIn    cause = "credentials of nobody"
	noDiscovery  cause = "a caller who may not discover tools"
	missingName  cause = "a missing name"
	unknownTool  cause = "an unknown tool"
	malformedDoc cause = "a body that is no JSON"
	brokenRule   cause = "arguments that break the inputSchema"
	failedMethod cause = "a method that failed"
	other        cause = "" // stands alone
)

// codesOfCause are the codes that the contract names for a cause.
var codesOfCause = map[cause][]string{
	missingName:  {"missing_parameter"},
	unknownTool:  {"tool_not_found"},
	malformedDoc: {"invalid_json"},
	brokenRule:   {"invalid_params"},
	failedMethod: {"execution_error"},
}

// refusal is a request that a bridge ought to refuse. In query and body stand {known}, {hidden}, {denied}, {strict},
// {failing} and {throwing} for tools; without a mock, a request to invoke that holds one is left out.
type refusal struct {
	what   string
	cause  cause
	who    Identity
	method string // "" is GET
	path   string
	query  string
	body   string
	header http.Header
	fault  *mockdrupal.Fault // armed for this request
}

var (
	asNobody = http.Header{"Authorization": {"Basic " + basic("bridgecheck-nobody", "no-such-password")}}
	asText   = http.Header{"Content-Type": {"text/plain"}}
	asForm   = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
)

// refusals are requests of every sort that a bridge refuses, on all three endpoints.
var refusals = []refusal{
	{"list with a malformed cursor", other, Agent, "", ListPath, "cursor=%00%FF", "", nil, nil},
	{"list with a cursor that is a list", other, Agent, "", ListPath, "cursor[]=x", "", nil, nil},
	{"list by POST", wrongVerb, Agent, "POST", ListPath, "", "{}", nil, nil},
	{"list by PUT", wrongVerb, Agent, "PUT", ListPath, "", "", nil, nil},
	{"list by PATCH", wrongVerb, Agent, "PATCH", ListPath, "", "", nil, nil},
	{"list by DELETE", wrongVerb, Agent, "DELETE", ListPath, "", "", nil, nil},
	{"list by nobody", noSignIn, Anonymous, "", ListPath, "", "", nil, nil},
	{"list with credentials of nobody", badSignIn, Anonymous, "", ListPath, "", "", asNobody, nil},
	{"list by one who may not discover", noDiscovery, Outsider, "", ListPath, "", "", nil, nil},

	{"describe without a name", missingName, Agent, "", DescribePath, "", "", nil, nil},
	{"describe with an empty name", missingName, Agent, "", DescribePath, "name=", "", nil, nil},
	{"describe with a list of names", other, Agent, "", DescribePath, "name[]=x", "", nil, nil},
	{"describe with a name that is no UTF-8", other, Agent, "", DescribePath, "name=%FF%FE", "", nil, nil},
	{"describe of an unknown tool", unknownTool, Agent, "", DescribePath, "name=" + noSuchTool, "", nil, nil},
	{"describe of markup", unknownTool, Agent, "", DescribePath, "name=%3Cb%3E%22%5C", "", nil, nil},
	{"describe of a method that is no tool", unknownTool, Agent, "", DescribePath, "name={hidden}", "", nil, nil},
	{"describe by POST", wrongVerb, Agent, "POST", DescribePath, "name=" + noSuchTool, "{}", nil, nil},
	{"describe by PUT", wrongVerb, Agent, "PUT", DescribePath, "name=" + noSuchTool, "", nil, nil},
	{"describe by DELETE", wrongVerb, Agent, "DELETE", DescribePath, "name=" + noSuchTool, "", nil, nil},
	{"describe by nobody", noSignIn, Anonymous, "", DescribePath, "name=" + noSuchTool, "", nil, nil},
	{"describe with credentials of nobody", badSignIn, Anonymous, "", DescribePath, "name=" + noSuchTool, "", asNobody, nil},
	{"describe by one who may not discover", noDiscovery, Outsider, "", DescribePath, "name=" + noSuchTool, "", nil, nil},

	{"invoke with an empty body", other, Agent, "POST", InvokePath, "", " ", nil, nil},
	{"invoke with words", malformedDoc, Agent, "POST", InvokePath, "", "hello", nil, nil},
	{"invoke cut short", malformedDoc, Agent, "POST", InvokePath, "", `{"name":"` + noSuchTool, nil, nil},
	{"invoke with a list", other, Agent, "POST", InvokePath, "", `[]`, nil, nil},
	{"invoke with null", other, Agent, "POST", InvokePath, "", `null`, nil, nil},
	{"invoke without a name", missingName, Agent, "POST", InvokePath, "", `{"arguments":{}}`, nil, nil},
	{"invoke with a list as name", missingName, Agent, "POST", InvokePath, "", `{"name":["x"],"arguments":{}}`, nil, nil},
	{"invoke without arguments", other, Agent, "POST", InvokePath, "", `{"name":"` + noSuchTool + `"}`, nil, nil},
	{"invoke with a text as arguments", other, Agent, "POST", InvokePath, "", `{"name":"` + noSuchTool + `","arguments":"x"}`, nil, nil},
	{"invoke with duplicate members", other, Agent, "POST", InvokePath, "", `{"name":"a.b","name":"` + noSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke with deep arguments", other, Agent, "POST", InvokePath, "", `{"name":"` + noSuchTool + `","arguments":{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, nil, nil},
	{"invoke of an unknown tool", unknownTool, Agent, "POST", InvokePath, "", `{"name":"` + noSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke of markup", unknownTool, Agent, "POST", InvokePath, "", `{"name":"<b>\"\\","arguments":{}}`, nil, nil},
	{"invoke by GET", wrongVerb, Agent, "GET", InvokePath, "", "", nil, nil},
	{"invoke by PUT", wrongVerb, Agent, "PUT", InvokePath, "", "{}", nil, nil},
	{"invoke by PATCH", wrongVerb, Agent, "PATCH", InvokePath, "", "{}", nil, nil},
	{"invoke by DELETE", wrongVerb, Agent, "DELETE", InvokePath, "", "", nil, nil},
	{"invoke as text", other, Agent, "POST", InvokePath, "", `{"name":"` + noSuchTool + `","arguments":{}}`, asText, nil},
	{"invoke as a form", other, Agent, "POST", InvokePath, "", `name=` + noSuchTool, asForm, nil},
	{"invoke by nobody", noSignIn, Anonymous, "POST", InvokePath, "", `{"name":"` + noSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke with credentials of nobody", badSignIn, Anonymous, "POST", InvokePath, "", `{"name":"` + noSuchTool + `","arguments":{}}`, asNobody, nil},
	{"invoke by one who may not use JSON-RPC", other, NoRPC, "POST", InvokePath, "", `{"name":"` + noSuchTool + `","arguments":{}}`, nil, nil},
	{"invoke of a method that is no tool", unknownTool, Agent, "POST", InvokePath, "", `{"name":"{hidden}","arguments":{}}`, nil, nil},
	{"invoke of a tool that the caller may not run", other, Discoverer, "POST", InvokePath, "", `{"name":"{denied}","arguments":{}}`, nil, nil},
	{"invoke with a parameter missing", brokenRule, Agent, "POST", InvokePath, "", `{"name":"{strict}","arguments":{}}`, nil, nil},
	{"invoke of a method that fails", failedMethod, Agent, "POST", InvokePath, "", `{"name":"{failing}","arguments":{}}`, nil, nil},
	{"invoke of a method that throws", failedMethod, Agent, "POST", InvokePath, "", `{"name":"{throwing}","arguments":{}}`, nil, nil},
	{"invoke while the site sends a page", other, Agent, "POST", InvokePath, "", `{"name":"{known}","arguments":{}}`, nil, &mockdrupal.Fault{Route: route.JSONRPC, Kind: fault.HTML, Status: 503}},
	{"invoke while the site resets connections", other, Agent, "POST", InvokePath, "", `{"name":"{known}","arguments":{}}`, nil, &mockdrupal.Fault{Route: route.JSONRPC, Kind: fault.Reset}},
	{"invoke while the site sends garbage", other, Agent, "POST", InvokePath, "", `{"name":"{known}","arguments":{}}`, nil, &mockdrupal.Fault{Route: route.JSONRPC, Kind: fault.Garbage}},
}

// asked is an answer to one of the refusals.
type asked struct {
	refusal
	*Answer
}

// refuseAll sends every refusal that this run can send and gives the answers that refuse. Its twin is a list that works.
func (b *Bridge) refuseAll(ctx context.Context) []asked {
	var all []asked
	for _, a := range b.askAll(ctx) {
		if a.Status >= 400 {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		NotTestable("the bridge refuses nothing")
	}
	return all
}

// askAll sends every refusal that this run can send.
func (b *Bridge) askAll(ctx context.Context) []asked {
	b.As(Agent).List(ctx).MustSucceed()
	tools := b.stand(ctx)
	var all []asked
	for _, r := range refusals {
		query, known := tools.in(r.query)
		body, also := tools.in(r.body)
		if !known || !also || !b.Knows(r.who) || r.fault != nil && b.Drupal == nil {
			continue
		}
		q := Request{Method: r.method, Path: r.path, Raw: query, Header: r.header}
		if r.body != "" {
			q.Body, q.Show = strings.NewReader(body), body
		}
		disarm := func() {}
		if r.fault != nil {
			disarm = b.Drupal.Arm(*r.fault)
		}
		all = append(all, asked{r, b.As(r.who).Send(ctx, q)})
		disarm()
		if r.fault != nil {
			b.recovered(ctx, b.mustRun(ctx))
		}
	}
	return all
}

// portable are the names that can stand in a query and in JSON as they are.
var portable = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// stands are the tools that stand for the names in braces.
type stands map[string]string

// stand finds them on the site; without a site there are none.
func (b *Bridge) stand(ctx context.Context) stands {
	if b.Drupal == nil {
		return nil
	}
	s := stands{"{known}": b.KnownTool(ctx)}
	for i := range b.Drupal.Site().Methods {
		m := &b.Drupal.Site().Methods[i]
		if m.MCP == nil && m.Behaviour.Kind == fixtures.Value && portable.MatchString(m.ID) && b.Drupal.Site().MayRun(userOf(b.Drupal.Site(), Agent), m) {
			s["{hidden}"] = b.ToolName(m.ID)
		}
	}
	discoverable := b.samples(Discoverer, well...)
	for _, tool := range b.samples(Agent, append([]fixtures.Kind{fixtures.Fail, fixtures.Throw}, well...)...) {
		if !portable.MatchString(tool.Name) {
			continue
		}
		switch kind := tool.Behaviour.Kind; {
		case kind == fixtures.Throw:
			s["{throwing}"] = tool.Name
		case kind == fixtures.Fail && len(tool.Params) > 0 && strings.Contains(string(tool.Params[0].Resolved()), `"type":"string"`):
			s["{picky}"], s["{text}"] = tool.Name, tool.Params[0].Name
		case kind == fixtures.Fail && tool.fails().Code < -32603 && len(tool.Arguments) == 0:
			s["{failing}"] = tool.Name
		case kind == fixtures.Echo && len(tool.Arguments) == 1 && len(tool.Params) == 1 && strings.Contains(string(tool.Params[0].Resolved()), `"type":"string"`):
			s["{strict}"], s["{words}"] = tool.Name, tool.Params[0].Name
		case len(tool.Access) > 0 && len(tool.Arguments) == 0 && !hasSample(discoverable, tool.ID):
			s["{denied}"] = tool.Name
		}
	}
	return s
}

func hasSample(list []sample, id string) bool {
	for _, s := range list {
		if s.ID == id {
			return true
		}
	}
	return false
}

// in puts the tools in; ok is false when one is needed that there is not.
func (s stands) in(text string) (filled string, ok bool) {
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
