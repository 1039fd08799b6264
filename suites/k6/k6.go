// Package k6 writes a load test of a bridge for k6: calls that the bridge served, by the callers of a configuration. It is no
// load generator. No secret is ever in the script: it names environment variables.
package k6

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// Header is a header that authenticates a caller: the secret of the environment variable Env, with User as HTTP Basic has it.
type Header struct {
	Name   string  `json:"header"`
	Scheme string  `json:"scheme,omitempty"`
	User   *string `json:"user,omitempty"`
	Env    string  `json:"env"`
}

// Call is a call of a tool.
type Call struct {
	Identity check.Identity `json:"identity"`
	Tool     string         `json:"tool"`
	Body     string         `json:"body"` // JSON
}

// Script is what a script sends.
type Script struct {
	URL        string // of the bridge
	Identities map[check.Identity][]Header
	Calls      []Call
}

//go:embed script.js
var script string

var scriptTemplate = template.Must(template.New("script").Parse(script))

// Write writes the script.
func (s Script) Write(w io.Writer) error {
	lines := map[string]string{}
	for name, value := range map[string]any{"URL": s.URL, "Identities": s.Identities, "Calls": s.Calls} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		lines[name] = string(text)
	}
	return scriptTemplate.Execute(w, lines)
}

// Options say which calls are looked for.
type Options struct {
	URL    string // of the bridge
	Client *http.Client
	Run    suites.Options // its Credentials and Invocations
	Seed   uint64         // of the generated arguments
}

// Collect finds calls for a script: the invocations that were configured, and for each caller the tools that change nothing
// (annotations.readOnlyHint), with generated arguments. It sends each of these calls once, and gives the tools that it left
// out because the bridge did not serve it.
func Collect(ctx context.Context, o Options, callers map[check.Identity][]Header) (s *Script, left []string, err error) {
	s = &Script{URL: strings.TrimSuffix(o.URL, "/"), Identities: callers}
	client := *o.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // credentials are for the bridge alone
	o.Client = &client
	for _, i := range o.Run.Callers.Invocations {
		if _, known := callers[i.Identity]; known && (i.Status == 0 || i.Status == http.StatusOK) {
			arguments, err := exact.Parse([]byte(cmp.Or(string(i.Arguments), "{}")))
			if err != nil {
				return nil, nil, fmt.Errorf("the arguments of the invocation of %s: %w", i.Tool, err)
			}
			s.Calls = append(s.Calls, Call{i.Identity, i.Tool, body(i.Tool, arguments)})
		}
	}
	for _, who := range slices.Sorted(maps.Keys(callers)) {
		b := bridge{o, s.URL, who}
		tools, err := b.tools(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, tool := range tools {
			if hints, _ := tool["annotations"].(map[string]any); hints["readOnlyHint"] != true {
				continue
			}
			name, _ := tool["name"].(string)
			schema, _ := tool["inputSchema"].(map[string]any)
			maker, err := generate.ForArguments(schema, rand.New(rand.NewPCG(o.Seed, 0)))
			if err != nil {
				left = append(left, name)
				continue
			}
			call := Call{who, name, body(name, maker.Plain())}
			status, _, err := b.send(ctx, "POST", check.InvokePath, call.Body)
			if err != nil {
				return nil, nil, err
			}
			if status != http.StatusOK {
				left = append(left, name)
				continue
			}
			s.Calls = append(s.Calls, call)
		}
	}
	slices.Sort(left)
	return s, slices.Compact(left), nil
}

func body(tool string, arguments any) string {
	return string(client.Encode(map[string]any{"name": tool, "arguments": arguments}))
}

// Callers are the callers of a configuration, each with the headers that authenticate it; without any, it is the anonymous one.
func Callers(f *settings.File) map[check.Identity][]Header {
	callers := map[check.Identity][]Header{}
	for name, i := range f.Identities {
		callers[settings.IdentityNamed(name)] = headers(name, i)
	}
	if len(callers) == 0 {
		callers[check.Anonymous] = []Header{}
	}
	return callers
}

// headers authenticate a caller. A secret that has no environment variable gets one that is named after the caller; so does the
// token or the cookie that a login gives, which the user of the script has to fetch.
func headers(name string, i settings.Identity) []Header {
	variable := func(s settings.Secret, what string) string { return cmp.Or(s.Env, variableOf(name+"_"+what)) }
	all := []Header{}
	switch {
	case i.Basic != nil:
		all = append(all, Header{"Authorization", "Basic", &i.Basic.User, variable(i.Basic.Password, "password")})
	case i.Bearer != nil:
		all = append(all, Header{"Authorization", "Bearer", nil, variable(*i.Bearer, "token")})
	case i.ClientCredentials != nil:
		all = append(all, Header{"Authorization", "Bearer", nil, variableOf(name + "_token")})
	case i.Login != nil:
		all = append(all, Header{"Cookie", "", nil, variableOf(name + "_cookie")})
	}
	for _, header := range slices.Sorted(maps.Keys(i.Headers)) {
		all = append(all, Header{header, "", nil, variable(i.Headers[header], header)})
	}
	return all
}

var noVariable = regexp.MustCompile(`[^A-Z0-9]+`)

func variableOf(text string) string { return noVariable.ReplaceAllString(strings.ToUpper(text), "_") }

// bridge is the bridge as one caller sees it.
type bridge struct {
	o   Options
	url string
	who check.Identity
}

// What a bridge may send.
const (
	maxBody  = 64 << 20
	maxPages = 1000
)

// tools are all that the caller is shown.
func (b bridge) tools(ctx context.Context) ([]map[string]any, error) {
	var all []map[string]any
	for cursor, page := "", 0; page == 0 || cursor != ""; page++ {
		path := check.ListPath
		if cursor != "" {
			path += "?cursor=" + url.QueryEscape(cursor)
		}
		status, text, err := b.send(ctx, "GET", path, "")
		if err != nil {
			return nil, err
		}
		if status == http.StatusUnauthorized || status == http.StatusForbidden {
			return nil, &suites.UsageError{Reason: fmt.Sprintf("the bridge does not show %s its tools (%d): give the credentials in --config, as `identities`", b.who, status)}
		}
		parsed, err := exact.Parse(text)
		list, _ := parsed.(map[string]any)
		tools, ok := list["tools"].([]any)
		if err != nil || status != http.StatusOK || !ok {
			return nil, fmt.Errorf("GET %s as %s: %d, not 200 with tools: try `bridgecheck run --only 'list/*'`", check.ListPath, b.who, status)
		}
		for _, tool := range tools {
			if tool, ok := tool.(map[string]any); ok {
				all = append(all, tool)
			}
		}
		if cursor, _ = list["nextCursor"].(string); page == maxPages {
			return nil, fmt.Errorf("the list of %s has more than %d pages", b.who, maxPages)
		}
	}
	return all, nil
}

func (b bridge) send(ctx context.Context, method, path, body string) (status int, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	b.o.Run.Callers.Credentials[b.who].Apply(req.Header)
	res, err := b.o.Client.Do(req)
	if err != nil {
		return 0, nil, &suites.UnreachableError{URL: b.url, Reason: err}
	}
	defer res.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(res.Body, maxBody)); err != nil {
		return 0, nil, fmt.Errorf("read the response to %s %s: %w", method, path, err)
	}
	return res.StatusCode, text, nil
}
