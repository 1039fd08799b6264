package docs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// example is a pair of `http` blocks of the contract: what is sent, and what comes back.
type example struct {
	line     int
	toSite   bool
	oauth    bool   // to a bridge that claims oauth
	fault    string // JSON of a fault that the site is to have with the next request; "": none
	request  string
	response string
}

var (
	exampleFence = regexp.MustCompile("^```http (request|response)( to the site| with oauth)?$")
	faultMark    = regexp.MustCompile(`^<!-- the site's next response: (\{.*\}) -->$`)
)

// examples reads the pairs from a page. A request without a response, or the reverse, is an error.
func examples(page string) ([]example, error) {
	var all []example
	var next example
	var block *string // the block that is being read; nil: none
	for i, line := range strings.Split(page, "\n") {
		switch m := exampleFence.FindStringSubmatch(line); {
		case block != nil && line == "```":
			if block == &next.response {
				all, next = append(all, next), example{}
			}
			block = nil
		case block != nil:
			*block += line + "\n"
		case m != nil && (m[1] == "request") != (next.request == ""):
			return nil, fmt.Errorf("line %d: requests and responses must alternate", i+1)
		case m != nil && m[1] == "request":
			next.line, next.toSite, next.oauth, block = i+1, m[2] == " to the site", m[2] == " with oauth", &next.request
		case m != nil:
			block = &next.response
		default:
			if m := faultMark.FindStringSubmatch(line); m != nil {
				next.fault = m[1]
			}
		}
	}
	if next.request != "" {
		return nil, fmt.Errorf("line %d: the request has no response", next.line)
	}
	return all, nil
}

// TestContractExamples sends every request of docs/contract.md to the reference bridge, or to the mock site behind it, and
// compares the response with the one that the page shows.
func TestContractExamples(t *testing.T) {
	page := must.Get(os.ReadFile(filepath.Join(repository, "docs", "contract.md")))(t)
	all := must.Get(examples(string(page)))(t)
	c := must.Get(contract.Load())(t)
	bed := must.Get(testbed.Start(testbed.Options{}))(t)
	defer bed.Close()
	site := must.Get(bed.Drupal.Listen("127.0.0.1:0"))(t)
	defer site.Close()
	authorized := startAuthorized(t)
	shown := ""
	for _, e := range all {
		target := bed.URL
		switch {
		case e.toSite:
			target = site.URL
		case e.oauth:
			target = authorized.URL
			e = addressed(e, authorized)
		default:
			shown += e.response
		}
		if e.fault != "" {
			var f mockdrupal.Fault
			err := json.Unmarshal([]byte(e.fault), &f)
			must.Assert(t, err == nil, "line %d: %v", e.line, err)
			f.Route, f.Count = "jsonrpc", 1
			_, err = bed.Drupal.Arm(f)
			must.Assert(t, err == nil, "line %d: %v", e.line, err)
		}
		must.Equal(t, e.send(target), "", "docs/contract.md:%d", e.line)
	}
	// What only a loaded or broken bridge sends has no example.
	without := []string{"internal_error", "invalid_request", "request_too_large", "rate_limited", "overloaded"}
	for status, codes := range c.Codes {
		for _, code := range codes {
			must.Expect(t, strings.Contains(shown, fmt.Sprintf("{\"error\": {\"code\": %q", code)) != slices.Contains(without, code),
				"the code %s (%d) must have an example, or be listed among those without one", code, status)
		}
	}
}

// startAuthorized starts a bridge that claims oauth, over a site with the tool of the page that requires a scope.
func startAuthorized(t *testing.T) *testbed.Testbed {
	t.Helper()
	bed := must.Get(testbed.Start(testbed.Options{Profile: testbed.OAuth}))(t)
	t.Cleanup(bed.Close)
	site := bed.Drupal.Site().Clone()
	site.Methods = append(site.Methods, fixtures.Method{ID: "site.rebuild", Usage: "Rebuilds the site", Output: fixtures.Raw(`{"type":"string"}`),
		MCP:       &fixtures.Tool{Title: "Rebuild", Annotations: fixtures.Raw(`{"auth":{"level":"required","scopes":["site:write"]}}`)},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Value, Value: fixtures.Raw(`"done"`)}})
	bed.Drupal.SetSite(site)
	// The keys are made when they are first asked for, on a busy machine for longer than the bridge waits.
	must.Do(t, must.Get(http.Get(bed.Authority.URL+authserver.KeysPath))(t).Body.Close())
	return bed
}

// addressed puts the addresses and the tokens of a test into an example with oauth.
func addressed(e example, bed *testbed.Testbed) example {
	issue := func(audience string, changes map[string]any) string {
		return bed.Authority.Issue("agent", audience, changes)
	}
	resource := bed.URL + "/mcp"
	put := strings.NewReplacer("https://bridge.example", bed.URL, "https://login.example", bed.Authority.URL,
		"Bearer TOKEN-FOR-ANOTHER-RESOURCE\n", "Bearer "+issue("https://other.example/mcp", nil)+"\n",
		"Bearer TOKEN-WITH-SITE-WRITE\n", "Bearer "+issue(resource, map[string]any{"scope": "openid site:write"})+"\n",
		"Bearer EXPIRED-TOKEN\n", "Bearer "+issue(resource, map[string]any{"exp": bed.Authority.Ago(time.Hour)})+"\n",
		"Bearer TOKEN\n", "Bearer "+issue(resource, nil)+"\n")
	e.request, e.response = put.Replace(e.request), put.Replace(e.response)
	return e
}

// send sends the request of the example and says how the response differs from the one shown; "" where it does not.
func (e example) send(target string) string {
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(withHost(e.request, target))))
	if err != nil {
		return err.Error()
	}
	_, body, _ := strings.Cut(e.request, "\n\n")
	sent, err := http.NewRequest(request.Method, target+request.URL.String(), strings.NewReader(strings.TrimSpace(body)))
	if err != nil {
		return err.Error()
	}
	sent.Header = request.Header
	got, err := http.DefaultClient.Do(sent)
	if err != nil {
		return err.Error()
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		return err.Error()
	}
	head, body, _ := strings.Cut(strings.TrimSpace(e.response), "\n\n")
	lines := strings.Split(head, "\n")
	if status := "HTTP/1.1 " + got.Status; lines[0] != status {
		return fmt.Sprintf("the response is %s, not %s\n%s", status, lines[0], data)
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		if !like(got.Header.Get(name), value) {
			return fmt.Sprintf("the header %s is %q, not %q", name, got.Header.Get(name), value)
		}
	}
	if body == "" {
		return ""
	}
	var want, have any
	if err := decode([]byte(body), &want); err != nil {
		return "the body shown: " + err.Error()
	}
	if err := decode(data, &have); err != nil {
		return fmt.Sprintf("the body: %v\n%s", err, data)
	}
	if at := differs(want, have, "body"); at != "" {
		return fmt.Sprintf("%s\n%s", at, data)
	}
	return ""
}

// withHost gives a request of the page the Host header and the line ends that HTTP requires.
func withHost(request, target string) string {
	head, _, _ := strings.Cut(request, "\n\n")
	return strings.ReplaceAll(strings.TrimSpace(head), "\n", "\r\n") + "\r\nHost: " + strings.TrimPrefix(target, "http://") + "\r\n\r\n"
}

// like compares texts, where … in want stands for any text.
func like(got, want string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$").MatchString(got)
}

func decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

// differs names the first place where a value is not as the page shows it; "" where there is none. In what is shown "…" is
// any value, at the end of an array any further elements, and as the name of a member any further members.
func differs(want, got any, at string) string {
	switch want := want.(type) {
	case string:
		if want == "…" {
			return ""
		}
	case []any:
		have, ok := got.([]any)
		open := len(want) > 0 && want[len(want)-1] == "…"
		if open {
			want = want[:len(want)-1]
		}
		if !ok || len(have) < len(want) || len(have) > len(want) && !open {
			return fmt.Sprintf("%s is no array of this length: %v", at, got)
		}
		for i, w := range want {
			if d := differs(w, have[i], fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
		return ""
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is no object: %v", at, got)
		}
		for name, w := range want {
			if _, there := have[name]; name != "…" && !there {
				return fmt.Sprintf("%s has no member %s", at, name)
			} else if d := differs(w, have[name], at+"."+name); name != "…" && d != "" {
				return d
			}
		}
		for name := range have {
			if _, shown := want[name]; !shown && want["…"] == nil {
				return fmt.Sprintf("%s has a member %s", at, name)
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s is %v, not %v", at, got, want)
	}
	return ""
}

// What the contract says about --exec is what the guide for implementers and the suites say.
func TestContractNamesTheEnvironmentAndDefaults(t *testing.T) {
	all := pages(t)
	variables := regexp.MustCompile("`((?:DRUPAL|BRIDGE)_[A-Z_]+)`").FindAllString(all["docs/validate-my-bridge.md"], -1)
	must.Assert(t, len(variables) >= 8, "docs/validate-my-bridge.md has only the variables %v", variables)
	for _, name := range append(variables, quoted(suites.DefaultCapabilities())...) {
		_, section, _ := strings.Cut(all["docs/contract.md"], "\n## How a bridge is started for a test\n")
		section, _, _ = strings.Cut(section, "\n## ")
		must.Expect(t, strings.Contains(section, name), "docs/contract.md does not name %s", name)
	}
}

func quoted(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = "`" + name + "`"
	}
	return all
}
