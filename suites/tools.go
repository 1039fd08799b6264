package suites

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/exact"
)

// Bounds of how far cursors are followed: a list that never ends is a fault, not a hang.
const (
	maxPages      = 3000
	maxEmptyPages = 20
)

// Listing is every page that following the cursors gave. Fault says why it ended early, "" at a proper end.
type Listing struct {
	Pages []*Response
	Fault Finding
}

// Tools are the tools of all pages, in order.
func (l Listing) Tools() []Tool {
	var all []Tool
	for _, p := range l.Pages {
		all = append(all, p.Tools()...)
	}
	return all
}

// Names are the names of all pages, in order.
func (l Listing) Names() []string {
	tools := l.Tools()
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name()
	}
	return names
}

// Once tells whether exactly one tool has the name.
func (l Listing) Once(name string) bool {
	count := 0
	for _, page := range l.Pages {
		for _, t := range page.Tools() {
			if t.Name() == name {
				count++
			}
		}
	}
	return count == 1
}

// Find gives the listed tool of a name.
func (l Listing) Find(name string) (Tool, bool) {
	tools := l.Tools()
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name() == name }); i >= 0 {
		return tools[i], true
	}
	return nil, false
}

// pageOf is the page that holds a tool of the name; the last one where none does.
func (l Listing) pageOf(name string) *Response {
	for _, page := range l.Pages {
		if slices.ContainsFunc(page.Tools(), func(t Tool) bool { return t.Name() == name }) {
			return page
		}
	}
	return l.Last()
}

// Last is the last page.
func (l Listing) Last() *Response { return l.Pages[len(l.Pages)-1] }

// ListAll follows the cursors from the first page to the end, to a refusal, or to a cursor that stood before.
func (c Client) ListAll(ctx context.Context) Listing {
	page := c.List(ctx)
	l := Listing{Pages: []*Response{page}}
	seen := map[string]bool{}
	empty := 0
	for {
		cursor := page.NextCursor()
		if len(page.Tools()) == 0 {
			empty++
		}
		switch {
		case page.Status != http.StatusOK:
			l.Fault = mismatch(page.Subject(), "a page of tools", page.Outcome())
			return l
		case cursor == "":
			return l
		case seen[cursor]:
			l.Fault = mismatch(page.Subject(), "cursors that lead to an end", fmt.Sprintf("the cursor %q a second time", cursor))
			return l
		case len(l.Pages) == maxPages || empty == maxEmptyPages:
			l.Fault = mismatch(page.Subject(), "cursors that lead to an end", fmt.Sprintf("still a cursor after %d pages", len(l.Pages)))
			return l
		}
		seen[cursor] = true
		page = c.List(ctx, cursor)
		l.Pages = append(l.Pages, page)
	}
}

// MustListAll is ListAll for checks that judge something else: where the list itself fails they are not testable. A
// list that changed while it was read, which a cursor may tell (list/change-between-pages), is read once more.
func (c Client) MustListAll(ctx context.Context) Listing {
	l := c.ListAll(ctx)
	if last := l.Last(); len(l.Pages) > 1 && last.Status == http.StatusBadRequest && last.Code() == "invalid_cursor" {
		l = c.ListAll(ctx)
	}
	if !l.Fault.none() {
		Untestable("the list of tools, which it builds on, failed: ", l.Fault)
	}
	for _, page := range l.Pages {
		cursor, there := page.Member("nextCursor")
		if _, text := cursor.(string); there && cursor != nil && !text {
			NotTestable("the list of tools, which it builds on, has a cursor that is no string (list/next-cursor-type judges that)")
		}
		tools, _ := page.Member("tools")
		if _, list := tools.([]any); !list {
			NotTestable("the list of tools, which it builds on, has no `tools` array (list/has-tools-array judges that)")
		}
	}
	return l
}

// Knows tells whether the run can sign in as the identity.
func (t *T) Knows(who Identity) bool {
	_, ok := t.credentialsOf(who)
	return ok
}

// KnownTool names a tool that the agent sees: a plain one of the mock's site that runs without arguments, else the
// first that is listed.
func (t *T) KnownTool(ctx context.Context) string {
	if t.Drupal != nil {
		if id := t.simplest(); id != "" {
			return t.ToolName(id)
		}
	}
	names := t.As(Agent).MustListAll(ctx).Names()
	if len(names) == 0 {
		NotTestable("the agent sees no tool: it needs one")
	}
	return names[0]
}

// HiddenMethods are methods of the site that every permission would let run, but that are not exposed as tools.
func (t *T) HiddenMethods() []string {
	var hidden []string
	site := t.Drupal.Site()
	for i := range site.Methods {
		if m := &site.Methods[i]; !t.exposed(m) && site.MayRun(userOf(site, Agent), m) {
			hidden = append(hidden, t.ToolName(m.ID))
			if t.ToolName(m.ID) != m.ID {
				hidden = append(hidden, m.ID) // the name that the site knows it by
			}
		}
	}
	if len(hidden) == 0 {
		NotTestable("the site " + site.Name + " has no method that is not exposed")
	}
	return hidden
}

// DeniedTool names a tool that may runs and who lacks the permission for.
func (t *T) DeniedTool(who, may Identity) string {
	site := t.Drupal.Site()
	for i := range site.Methods {
		m := &site.Methods[i]
		if t.exposed(m) && !site.MayRun(userOf(site, who), m) && site.MayRun(userOf(site, may), m) && runsPlainly(m) {
			return t.ToolName(m.ID)
		}
	}
	NotTestable(fmt.Sprintf("the site %s has no tool that %s may run and %s may not", site.Name, may, who))
	return ""
}

// BeJSON matches an answer with a JSON content type and a body that reads strictly as one JSON object.
func BeJSON() types.GomegaMatcher {
	return Meet("application/json with one JSON object", func(a *Response) string {
		if a.Err != nil {
			return a.Err.Error()
		}
		if t, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type")); t != "application/json" {
			return fmt.Sprintf("Content-Type %q", a.Header.Get("Content-Type"))
		}
		v, err := a.JSON()
		if err != nil {
			return "a body that " + err.Error()
		}
		if _, ok := v.(map[string]any); !ok {
			return "the body " + exact.Short(v)
		}
		return ""
	})
}

// BeHTML matches an HTML page, whatever its content type says.
func BeHTML() types.GomegaMatcher {
	return &responseMatcher{expected: "HTML", test: func(a *Response) (string, bool) {
		start := strings.ToLower(strings.TrimSpace(string(a.Body[:min(len(a.Body), 200)])))
		return fmt.Sprintf("Content-Type %q: %s", a.Header.Get("Content-Type"), a.Outcome()),
			strings.Contains(a.Header.Get("Content-Type"), "html") || strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html")
	}}
}

// RefusedForLength tells whether the server refused a request for its length, before it looked where it goes (such
// refusals need no envelope, errors/envelope).
func (a *Response) RefusedForLength() bool {
	return a.Status == http.StatusRequestURITooLong || a.Status == http.StatusRequestHeaderFieldsTooLarge
}

// SayInMessage matches a refusal whose message holds the text.
func SayInMessage(text string) types.GomegaMatcher {
	return matching(fmt.Sprintf("a message that holds %q", text), func(a *Response) bool { return strings.Contains(a.Message(), text) })
}

// EqualAnswer matches an answer of the same status and an equal JSON body.
func EqualAnswer(other *Response) types.GomegaMatcher {
	return Meet("the same answer as before: "+other.Outcome(), func(a *Response) string {
		if a.Status != other.Status {
			return a.Outcome()
		}
		want, before := other.JSON()
		got, err := a.JSON()
		if err != nil && before != nil && bytes.Equal(a.Body, other.Body) {
			return "" // of which fault of form another clause tells
		}
		if err != nil {
			return "a body that " + err.Error()
		}
		if d := exact.Diff(want, got); d != "" {
			return "another body " + d
		}
		return ""
	})
}

// BeUnknown matches a refusal that cannot be told from that of an unknown name: 404 tool_not_found with the status,
// code, headers and shape of message that two names of nobody get. What differs between those two (dates, request
// ids) is free. ask sends the request for a name.
func BeUnknown(ask func(ctx context.Context, name string) *Response, ctx context.Context, name string) types.GomegaMatcher {
	return Meet("the same refusal as for an unknown name", func(a *Response) string {
		first, second := nobody(name, 'q'), nobody(name, 'z')
		one, two := ask(ctx, first), ask(ctx, second)
		if one.Status == a.Status && one.Code() != a.Code() {
			return fmt.Sprintf("code %q, but an unknown name gets %q", a.Code(), one.Code())
		}
		if a.Status != one.Status {
			return fmt.Sprintf("%s, but an unknown name gets %s", a.Outcome(), one.Outcome())
		}
		if a.Status != http.StatusNotFound {
			return a.Outcome()
		}
		if x, y, z := bodyOf(a, name), bodyOf(one, first), bodyOf(two, second); y == z && x != y {
			return fmt.Sprintf("the body %s, but an unknown name gets %s", exact.Cut(x, 200), exact.Cut(y, 200))
		}
		for _, h := range headerNames(a, one, two) {
			x, y, z := headerOf(a, h, name), headerOf(one, h, first), headerOf(two, h, second)
			if y == z && x != y {
				return fmt.Sprintf("%s %q, but an unknown name gets %q", h, x, y)
			}
		}
		return ""
	})
}

// nobody is a name of the same length and punctuation that no tool has.
func nobody(name string, letter rune) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return letter
		}
		return r
	}, name)
}

// headerNames lists the headers of the answers, but for the one that tells the time.
func headerNames(answers ...*Response) []string {
	var names []string
	for _, a := range answers {
		for name := range a.Header {
			if name != "Date" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// ofTheMoment are headers whose values tell of the time and the load, not of the request.
var ofTheMoment = []string{"Age", "Expires", "Retry-After", "Server-Timing", "X-Response-Time", "X-Runtime",
	"X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Ratelimit-Remaining", "Ratelimit-Reset", "Ratelimit"}

func headerOf(a *Response, header, name string) string {
	if slices.Contains(ofTheMoment, header) && len(a.Header.Values(header)) > 0 {
		return "present"
	}
	return strings.ReplaceAll(strings.Join(a.Header.Values(header), ", "), name, "NAME")
}

func bodyOf(a *Response, name string) string {
	return strings.ReplaceAll(oneLine(string(a.Body)), name, "NAME")
}
