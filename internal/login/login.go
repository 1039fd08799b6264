// Package login gets a token for a person at a bridge behind OAuth, as MCP's authorization asks, and says which layer fails:
// challenge, metadata of the resource (RFC 9728) and of the authorization server (RFC 8414), registration (RFC 7591 or client
// id metadata), authorization code with PKCE on a loopback redirect or device (RFC 8628), audience (RFC 8707), refresh.
//
// Its invariants: a token goes to the resource that the user named and to the server that issued it, the secret of a client to the
// issuer that the user named, and neither stands in a step or an error; all documents are read by package exact, which refuses
// what two readers could read in two ways.
//
// A Flow sends one request after the other and notes a step for each layer; what ends it is an Error with that step.
// golang.org/x/oauth2 is not used: it reads tokens by encoding/json, which ignores the case of names and takes the last of
// two members, and sends no `resource` with a refresh.
package login

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/loopback"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// Options say at what a person logs in, and how.
type Options struct {
	Resource     string // URL of the MCP endpoint
	ClientID     string // of a client that is registered, or the address of its metadata; "": one registers itself
	ClientSecret string
	Issuer       string // the only authorization server to log in at; "": the first that the resource names. A ClientSecret needs it
	Scope        string // to ask for; "": what the challenge or the metadata name
	Device       bool   // a browser on another machine
	Transport    *http.Transport
	Timeout      time.Duration        // of one request; 0: 10 s
	Show         func(address string) // tells the person where to log in, with the code to type in
}

// Flow is one attempt.
type Flow struct {
	Options
	Steps []Step

	secrets  redact.Redactor
	asked    string // scopes of the challenge or of the resource's metadata
	issuer   string
	server   map[string]any // its metadata
	id       string         // of the client
	secret   string
	inHeader bool // the client sends its secret by HTTP Basic
}

// Address is the MCP endpoint at an address that a user gives: a base without a path has it at /mcp.
func Address(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q is no address of an MCP endpoint: give for example https://drupal.example/mcp", text)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("the address of an MCP endpoint has no user, no query and no fragment: give for example https://drupal.example/mcp")
	case !secure(text):
		return "", fmt.Errorf("%s is not https, and not on this machine: anybody on the way could read the tokens", text)
	case strings.Trim(u.Path, "/") == "":
		u.Path = client.MCPPath
	}
	return u.String(), nil
}

// secure reports whether a value is an address to which tokens may be sent.
func secure(v any) bool {
	text, _ := v.(string)
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback.Is(u.Hostname())
}

// New starts an attempt.
func New(o Options) *Flow {
	if o.Transport == nil {
		o.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxResponseHeaderBytes: client.MaxHead}
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	f := &Flow{Options: o}
	f.secrets.Add(o.ClientSecret)
	return f
}

// Send sends a request, follows no redirect and never sends twice.
func (f *Flow) Send(ctx context.Context, r client.Request) *client.Response { return f.as(ctx, "", r) }

func (f *Flow) as(ctx context.Context, bearer string, r client.Request) *client.Response {
	c := client.Client{Target: &client.Target{URL: strings.TrimSuffix(f.Resource, client.MCPPath), Transport: f.Transport}, Creds: client.Credentials{Token: bearer}}
	a := c.NewResponse(&r)
	c.Exchange(ctx, r, a, f.Timeout)
	return a
}

// open sends the request that opens an MCP session.
func (f *Flow) open(ctx context.Context, bearer string) *client.Response {
	s := &client.Session[sender]{Client: func(ctx context.Context, r client.Request) *client.Response {
		r.Address = f.Resource
		return f.as(ctx, bearer, r)
	}, Revision: client.MCP2025June}
	method, params := s.Opening()
	return s.Call(ctx, method, params)
}

type sender func(context.Context, client.Request) *client.Response

func (s sender) Send(ctx context.Context, r client.Request) *client.Response { return s(ctx, r) }

func (f *Flow) note(s Step) Step {
	s.Saw = f.secrets.Text(s.Saw)
	f.Steps = append(f.Steps, s)
	return s
}

func (f *Flow) ok(layer, clause, saw string) {
	f.note(Step{Layer: layer, State: OK, Clause: clause, Saw: saw})
}

// fail notes a fault. The error is for those that end the attempt.
func (f *Flow) fail(name, saw string, more ...any) error {
	return &Error{f.note(faults[name].step(name, Fails, fmt.Sprintf(saw, more...)))}
}

// challenged sends a request without a token.
func (f *Flow) challenged(ctx context.Context) (metadata string, err error) {
	a := f.open(ctx, "")
	params := a.Bearer()
	shown := a.Challenges()
	f.asked = params["scope"]
	address, named := params["resource_metadata"]
	switch {
	case a.Status == 0:
		return "", f.fail(NoResponse, "%s", a.Outcome())
	case a.Status != http.StatusUnauthorized:
		_ = f.fail("no-401", "a request without a token gives %s", a.Outcome())
	case params == nil:
		_ = f.fail("no-challenge", "%s", shown)
	case !named || !match.IsAddress(address) || !secure(address):
		_ = f.fail("no-metadata-address", "%s", shown)
	default:
		f.ok(atChallenge, "auth/challenge", shown)
		return address, nil
	}
	return "", nil
}

// wellKnown inserts a name between the host and the path of an address, as RFC 8414 and RFC 9728 do.
func wellKnown(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.Path = "/.well-known/" + name + strings.TrimSuffix(u.Path, "/")
	return u.String()
}

// document reads a metadata document at the first of the addresses that has one.
func (f *Flow) document(ctx context.Context, addresses ...string) (a *client.Response, at string) {
	for _, at = range slices.Compact(addresses) {
		if a = f.Send(ctx, client.Request{Address: at}); a.Status == http.StatusOK || a.Status == 0 {
			break
		}
	}
	return a, at
}

// discover finds the authorization server.
func (f *Flow) discover(ctx context.Context) error {
	named, err := f.challenged(ctx)
	if err != nil {
		return err
	}
	root, _ := url.Parse(f.Resource)
	root.Path = ""
	places := []string{named}
	if named == "" {
		places = []string{wellKnown(f.Resource, "oauth-protected-resource"), wellKnown(root.String(), "oauth-protected-resource")}
	}
	a, at := f.document(ctx, places...)
	v, unclear := a.JSON()
	object, _ := v.(map[string]any)
	wrong := match.ResourceMetadata(a, f.Resource, "")
	switch {
	case a.Status != http.StatusOK:
		return f.fail("no-resource-metadata", "%s gives %s", at, a.Outcome())
	case unclear != nil:
		return f.fail("resource-metadata-unclear", "the document at %s %v", at, unclear)
	case object != nil && object["resource"] != f.Resource:
		return f.fail("other-resource", "`resource` is %s at %s, expected %s", exact.Short(object["resource"]), at, f.Resource)
	case wrong != "" && match.IsAddress(first(object["authorization_servers"])):
		return f.fail("resource-metadata-unclear", "%s at %s", wrong, at)
	case wrong != "":
		return f.fail("no-authorization-server", "%s at %s", wrong, at)
	}
	f.issuer = cmp.Or(f.Issuer, text(first(object["authorization_servers"])))
	if f.Issuer != "" && !slices.Contains(texts(object["authorization_servers"]), f.issuer) {
		return f.fail("issuer-not-listed", "`authorization_servers` is %s at %s, and --issuer is %s", exact.Short(object["authorization_servers"]), at, f.issuer)
	}
	f.ok(atResource, "auth/metadata", at)
	f.asked = cmp.Or(f.asked, strings.Join(texts(object["scopes_supported"]), " "))
	return f.readServer(ctx)
}

// readServer reads the metadata of the authorization server.
func (f *Flow) readServer(ctx context.Context) error {
	if !secure(f.issuer) {
		return f.fail("no-endpoint", "the issuer %s is not https", f.issuer)
	}
	const openID = "openid-configuration"
	a, at := f.document(ctx, wellKnown(f.issuer, "oauth-authorization-server"), wellKnown(f.issuer, openID), strings.TrimSuffix(f.issuer, "/")+"/.well-known/"+openID)
	v, unclear := a.JSON()
	f.server, _ = v.(map[string]any)
	switch {
	case a.Status != http.StatusOK:
		return f.fail("no-server-metadata", "%s and the places before it give %s", at, a.Outcome())
	case unclear != nil:
		return f.fail("server-metadata-unclear", "the document at %s %v", at, unclear)
	case f.server["issuer"] != f.issuer:
		return f.fail("other-issuer", "`issuer` is %s at %s, expected %s", exact.Short(f.server["issuer"]), at, f.issuer)
	}
	for _, name := range []string{"authorization_endpoint", "token_endpoint"} {
		if !secure(f.server[name]) && (name != "authorization_endpoint" || !f.Device) {
			return f.fail("no-endpoint", "`%s` is %s", name, exact.Short(f.server[name]))
		}
	}
	f.ok(atServer, "rfc8414 3.3", at)
	methods := f.server["code_challenge_methods_supported"]
	switch {
	case f.Device:
		f.note(Step{Layer: atPKCE, State: Skipped, Saw: "a login by device does without it"})
	case !slices.Contains(texts(methods), "S256"):
		return f.fail("no-pkce", "`code_challenge_methods_supported` is %s", exact.Short(methods))
	default:
		f.ok(atPKCE, faults["no-pkce"].clause, "S256")
	}
	return nil
}

// register makes f a client of the authorization server, which is sent back to an address.
func (f *Flow) register(ctx context.Context, redirect string) error {
	const clause = "mcp-auth Client Registration Approaches"
	if f.id = f.ClientID; f.id != "" {
		if f.ClientSecret != "" && f.Issuer == "" { // any bridge can name a server of its own
			return f.fail("secret-without-issuer", "the bridge names the authorization server %s, which gets no secret without --issuer: if the client %s is registered there, add --issuer '%s'",
				f.issuer, f.id, strings.ReplaceAll(f.issuer, "'", `'\''`))
		}
		f.secret, f.inHeader = f.ClientSecret, true
		if strings.Contains(f.id, "://") && f.server["client_id_metadata_document_supported"] != true {
			return f.fail("client-id-not-taken", "the server does not offer client id metadata, and the id is an address: %s", f.id)
		}
		f.ok(atRegistration, clause, "the client "+f.id)
		return nil
	}
	endpoint, _ := f.server["registration_endpoint"].(string)
	if endpoint == "" {
		return f.fail("no-registration", "no `registration_endpoint`, and no --client-id")
	}
	if !secure(endpoint) {
		return f.fail("no-endpoint", "`registration_endpoint` is %s", endpoint)
	}
	metadata := map[string]any{"client_name": "bridgecheck", "redirect_uris": []any{redirect}, "token_endpoint_auth_method": "none"}
	if f.Device {
		metadata["grant_types"] = []any{deviceGrant, "refresh_token"}
	} else {
		metadata["grant_types"], metadata["response_types"] = []any{"authorization_code", "refresh_token"}, []any{"code"}
	}
	a := f.Send(ctx, client.Request{Method: http.MethodPost, Address: endpoint, Body: bytes.NewReader(client.Encode(metadata))})
	v, unclear := a.JSON()
	object, _ := v.(map[string]any)
	switch {
	case a.Status != http.StatusCreated && a.Status != http.StatusOK:
		return f.fail("registration-refused", "%s gives %s", endpoint, refusal(a))
	case unclear != nil || text(object["client_id"]) == "":
		return f.fail("registration-unclear", "the response has no `client_id` that can be read")
	case object["redirect_uris"] != nil && !slices.Contains(texts(object["redirect_uris"]), redirect):
		return f.fail("registration-unclear", "`redirect_uris` is %s, expected %s", exact.Short(object["redirect_uris"]), redirect)
	}
	f.id, f.secret = text(object["client_id"]), text(object["client_secret"])
	f.inHeader = object["token_endpoint_auth_method"] != "client_secret_post"
	f.secrets.Add(f.secret)
	f.ok(atRegistration, clause, "registered at "+endpoint)
	return nil
}

// refusal is an error response of the authorization server without anything secret in it.
func refusal(a *client.Response) string {
	if a.Status == 0 {
		return a.Outcome()
	}
	v, _ := a.JSON()
	object, _ := v.(map[string]any)
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, exact.Cut(client.OneLine(text(object["error"])+" "+text(object["error_description"])), 200)))
}

func first(list any) any {
	if all, _ := list.([]any); len(all) > 0 {
		return all[0]
	}
	return nil
}

func text(v any) string { s, _ := v.(string); return s }

// texts are the strings of a list.
func texts(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, item := range list {
		if s := text(item); s != "" {
			all = append(all, s)
		}
	}
	return all
}
