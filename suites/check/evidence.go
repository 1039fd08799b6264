package check

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// How much evidence a result keeps.
const (
	keptExchanges   = 12       // of a failure: the first few and the last
	keptPassing     = 2        // of a pass
	KeptBody        = 16 << 10 // bytes of a body in a failure
	keptPassingBody = 1 << 10
	keptUpstream    = 20 // requests to the site beside one exchange
)

// exchange is a response with the stretch of the journal that belongs to it.
type exchange struct {
	Response *Response
	since    int64
	until    int64
	site     *fixtures.Site     // as it was served then; nil without a mock
	shown    bool               // of a Table's row: the check has it
	caused   []mockdrupal.Entry // requests to the site, if others came between them; nil: all of the stretch are its own
}

// record keeps an exchange as evidence, with what reached the site since a position of its journal.
func (t *T) record(a *Response, since int64) {
	t.keep(&exchange{Response: a, since: since, until: t.Upstream.Last(), site: t.Drupal.Snapshot()})
}

// keep makes an exchange the latest of the check.
func (t *T) keep(e *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recording {
		t.exchanges = append(t.exchanges, e)
	}
}

// Blame marks the response that a failing matcher looked at, so that the curl line reproduces that one; nil: none.
func (t *T) Blame(a *Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blamed = a
}

// Blamed is the response to blame for what has just failed: without any, the last one that came.
func (t *T) Blamed() *Response {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blamed == nil && len(t.exchanges) > 0 {
		return t.exchanges[len(t.exchanges)-1].Response
	}
	return t.blamed
}

// Responses are those that the check has got so far.
func (t *T) Responses() []*Response {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Response, len(t.exchanges))
	for i, e := range t.exchanges {
		all[i] = e.Response
	}
	return all
}

// evidence returns the exchanges of the finished check that a report keeps, and the index of a response's exchange among
// them; nil: it is not kept.
func (t *T) evidence(failed bool) (kept []reports.Exchange, at func(*Response) *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, limit, body := t.exchanges, keptPassing, keptPassingBody
	if failed {
		limit, body = keptExchanges, KeptBody
	}
	kept = []reports.Exchange{}
	where := map[*Response]int{}
	blamed := t.blamedResponses()
	for _, r := range chosen(all, blamed, limit) {
		where[r.Response] = len(kept)
		e := t.reportedExchange(r, body)
		if slices.Contains(blamed, r.Response) && e.Request.Truncated > 0 && r.Response.Unseen == 0 && len(r.Response.Shown) <= reports.MaxWhole {
			e.Request.Whole = []byte(t.Redact.Text(r.Response.Shown))
		}
		kept = append(kept, e)
	}
	return kept, func(a *Response) *int {
		if i, ok := where[a]; ok {
			return new(i)
		}
		return nil
	}
}

// credentialHeaders are those of a response's request that hold secrets.
func (t *T) credentialHeaders(a *Response) []reports.Credential {
	var all []reports.Credential
	for name, values := range a.Sent {
		for _, value := range values {
			if t.Redact.Text(value) == value {
				continue
			}
			c := reports.Credential{Header: http.CanonicalHeaderKey(name)}
			if scheme, rest, _ := strings.Cut(value, " "); c.Header == "Authorization" {
				c.Scheme = t.Redact.Text(scheme)
				if scheme == "Basic" {
					c.User = t.Redact.Text(basicUser(rest))
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// basicUser is the account's name in the base64 of Basic credentials; "" when there is none.
func basicUser(encoded string) string {
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(plain), ":")
	return name
}

// blamedResponses are those that the findings blame, or the one that the failing matcher looked at.
func (t *T) blamedResponses() []*Response {
	var responses []*Response
	for _, n := range t.findings.noted {
		if n.Response != nil && !slices.Contains(responses, n.Response) {
			responses = append(responses, n.Response)
		}
	}
	if len(responses) == 0 && t.blamed != nil {
		responses = append(responses, t.blamed)
	}
	return responses
}

// chosen are the exchanges worth keeping, in time order: the first few, those of blamed responses, and of the last ones as
// many as there is room for.
func chosen(all []*exchange, blamed []*Response, limit int) []*exchange {
	if len(all) <= limit {
		return all
	}
	keep := make([]bool, len(all))
	left := limit
	take := func(i int) {
		if left > 0 && !keep[i] {
			keep[i], left = true, left-1
		}
	}
	for i := range limit / 4 {
		take(i)
	}
	for _, a := range blamed[:min(len(blamed), limit/2)] {
		if i := slices.IndexFunc(all, func(r *exchange) bool { return r.Response == a }); i >= 0 {
			take(i)
		}
	}
	for i := range slices.Backward(all) {
		take(i)
	}
	var some []*exchange
	for i, r := range all {
		if keep[i] {
			some = append(some, r)
		}
	}
	return some
}

func (t *T) reportedExchange(r *exchange, limit int) reports.Exchange {
	a := r.Response
	e := reports.Exchange{
		Identity: a.Who.String(), At: a.At.UTC(), Drupal: []reports.Upstream{},
		Request: reports.Message{Method: a.Method, URL: t.Redact.Text(t.target(a)), Header: t.Shown(a.Sent)}, Credentials: t.credentialHeaders(a),
	}
	t.noteSite(&e, a.Who, r.site)
	t.Body(&e.Request, []byte(a.Shown), limit)
	e.Request.Truncated += a.Unseen
	if a.Err != nil {
		e.Error = t.Redact.Text(a.Err.Error())
	}
	if a.Status != 0 {
		e.Response = &reports.Message{Status: a.Status, Header: t.Shown(a.Header), DurationMS: Milliseconds(a.Took)}
		t.Body(e.Response, a.Body, limit)
	}
	if t.Upstream == nil {
		return e
	}
	caused := r.caused
	if caused == nil {
		caused = t.Upstream.Entries(r.since)
	}
	for _, entry := range caused {
		if entry.Seq > r.until || len(e.Drupal) == keptUpstream {
			break
		}
		up := reports.Upstream{At: entry.Start.UTC(), User: t.Redact.Text(entry.User), HTTP: t.Redact.Text(entry.HTTPMethod + " " + entry.Path),
			Status: entry.Status, Fault: entry.Fault}
		if !entry.End.IsZero() { // else it has not ended yet
			up.DurationMS = Milliseconds(entry.End.Sub(entry.Start))
		}
		if len(entry.Calls) == 0 {
			e.Drupal = append(e.Drupal, up)
		}
		for _, call := range entry.Calls {
			up.Method, up.Ran, up.Params = t.Redact.Text(call.Method), call.Ran, nil
			if params := []byte(t.Redact.Text(string(call.Params))); len(params) <= limit && json.Valid(params) {
				up.Params = params
			}
			e.Drupal = append(e.Drupal, up)
		}
	}
	return e
}

func (t *T) Body(m *reports.Message, body []byte, limit int) {
	if len(body) > limit {
		m.Truncated = len(body) - limit
		body = body[:limit]
		for len(body) > 0 && m.Truncated > 0 && !utf8.Valid(body[max(0, len(body)-utf8.UTFMax):]) && !utf8.FullRune(lastRune(body)) {
			body = body[:len(body)-1]
			m.Truncated++
		}
	}
	text := string(body)
	if m.Truncated > 0 {
		text, _ = strings.CutSuffix(t.Redact.Text(text+redact.Cut), redact.Cut) // half a secret may be left at the end
	}
	if text = t.Redact.Text(text); utf8.ValidString(text) {
		m.Body = text
		return
	}
	m.Encoding, m.Body = "base64", base64.StdEncoding.EncodeToString([]byte(text))
}

// lastRune is the tail of b from the last byte that starts a rune.
func lastRune(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return nil
}

func (t *T) target(a *Response) string {
	base := cmp.Or(a.Base, t.URL)
	if a.RawQuery == "" {
		return base + a.Path
	}
	return base + a.Path + "?" + a.RawQuery
}

func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Shown writes headers as one line each; those that carry credentials show only their scheme or their name.
func (t *T) Shown(h http.Header) map[string]string {
	lines := map[string]string{}
	for name, values := range h {
		value := strings.Join(values, ", ")
		switch http.CanonicalHeaderKey(name) {
		case "Authorization", "Proxy-Authorization":
			scheme, _, _ := strings.Cut(value, " ")
			value = scheme + " " + redact.Mark
		case "Cookie", "Set-Cookie":
			key, _, _ := strings.Cut(value, "=")
			value = key + "=" + redact.Mark
		}
		lines[t.Redact.Text(name)] = t.Redact.Text(value)
	}
	return lines
}

// noteSite notes in an exchange what of the site was not as before the check: whether the check had changed it, and the
// permissions of the caller if the check created that account.
func (t *T) noteSite(e *reports.Exchange, who Identity, then *fixtures.Site) {
	if then == nil || t.before == nil {
		return
	}
	e.SiteChanged = !sameSite(then, t.before)
	user, ok := then.User(string(who))
	if !ok {
		return
	}
	if t.Drupal.Made(who) {
		e.Account = &reports.Account{Permissions: sortedPermissions(then, user)}
		return
	}
	e.SiteChanged = !sameFor(who, then, t.before)
}

// sameSite reports whether two sites are the same apart from roles and users. Sites that share their lists compare fast.
func sameSite(one, other *fixtures.Site) bool {
	a, b := *one, *other
	a.Roles, a.Users, b.Roles, b.Users = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// sameFor reports whether two sites are the same for an account of theirs.
func sameFor(who Identity, one, other *fixtures.Site) bool {
	if one == other {
		return true
	}
	if one == nil || other == nil || !sameSite(one, other) {
		return false
	}
	a, b := UserOf(one, who), UserOf(other, who)
	return a != nil && reflect.DeepEqual(a, b) && slices.Equal(sortedPermissions(one, a), sortedPermissions(other, b))
}

// sortedPermissions are those that a user holds.
func sortedPermissions(s *fixtures.Site, user *fixtures.User) []string {
	return slices.Sorted(slices.Values(site.Permissions(s, user)))
}
