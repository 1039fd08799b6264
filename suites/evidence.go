package suites

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// How much evidence a result keeps.
const (
	keptExchanges   = 12       // of a failure: the first few and the last
	keptPassing     = 2        // of a pass
	keptBody        = 16 << 10 // bytes of a body in a failure
	keptPassingBody = 1 << 10
	keptUpstream    = 20 // requests to the site beside one exchange
)

// recorded is an exchange with the stretch of the journal that belongs to it.
type recorded struct {
	answer *Answer
	since  int64
	until  int64
}

func (b *Bridge) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.exchanges, b.blamed, b.findings, b.inCheck, b.judging = nil, nil, findings{}, true, true
	if b.Upstream != nil {
		b.Upstream.Mark()
	}
}

// cleansUp tells that the running check has judged: what is sent to clean up shows nothing of the clause.
func (b *Bridge) cleansUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judging = false
}

func (b *Bridge) record(a *Answer, since int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.judging {
		return
	}
	b.exchanges = append(b.exchanges, &recorded{a, since, b.Upstream.last()})
}

// blame marks the answer that a failing matcher looked at, so that the curl line reproduces that one.
func (a *Answer) blame() { a.bridge.blame(a) }

func (b *Bridge) blame(a *Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blamed = a
}

// blamedNow is the answer to blame for what has just failed: without any, the last one that came.
func (b *Bridge) blamedNow() *Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blamed == nil && len(b.exchanges) > 0 {
		return b.exchanges[len(b.exchanges)-1].answer
	}
	return b.blamed
}

// evidence writes down what the finished check has seen, and gives where in it the exchange of an answer stands; nil:
// nowhere.
func (b *Bridge) evidence(failed bool) (kept []reports.Exchange, at func(*Answer) *int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, limit, body := b.exchanges, keptPassing, keptPassingBody
	if failed {
		limit, body = keptExchanges, keptBody
	}
	kept = []reports.Exchange{}
	where := map[*Answer]int{}
	for _, r := range chosen(all, b.blamedAnswers(), limit) {
		where[r.answer] = len(kept)
		kept = append(kept, b.exchange(r, body))
	}
	return kept, func(a *Answer) *int {
		if i, ok := where[a]; ok {
			return new(i)
		}
		return nil
	}
}

// credentialHeaders are those of an answer's request that hold secrets.
func (b *Bridge) credentialHeaders(a *Answer) []reports.Credential {
	var all []reports.Credential
	for name, values := range a.Sent {
		for _, value := range values {
			if b.redact.Text(value) == value {
				continue
			}
			c := reports.Credential{Header: http.CanonicalHeaderKey(name)}
			if scheme, rest, _ := strings.Cut(value, " "); c.Header == "Authorization" {
				c.Scheme = b.redact.Text(scheme)
				if scheme == "Basic" {
					c.User = b.redact.Text(basicUser(rest))
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

// blamedAnswers are those that the findings blame, or the one that the failing matcher looked at.
func (b *Bridge) blamedAnswers() []*Answer {
	var answers []*Answer
	for _, n := range b.findings.noted {
		if n.answer != nil && !slices.Contains(answers, n.answer) {
			answers = append(answers, n.answer)
		}
	}
	if len(answers) == 0 && b.blamed != nil {
		answers = append(answers, b.blamed)
	}
	return answers
}

// chosen are the exchanges worth keeping, in time order: the first few, those of blamed answers, and of the last ones as
// many as there is room for.
func chosen(all []*recorded, blamed []*Answer, limit int) []*recorded {
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
		if i := slices.IndexFunc(all, func(r *recorded) bool { return r.answer == a }); i >= 0 {
			take(i)
		}
	}
	for i := range slices.Backward(all) {
		take(i)
	}
	var some []*recorded
	for i, r := range all {
		if keep[i] {
			some = append(some, r)
		}
	}
	return some
}

func (b *Bridge) exchange(r *recorded, limit int) reports.Exchange {
	a := r.answer
	e := reports.Exchange{
		Identity: a.Who.String(), At: a.At.UTC(), Drupal: []reports.Upstream{},
		Request: reports.Message{Method: a.Method, URL: b.redact.Text(b.target(a)), Header: b.shown(a.Sent)}, Credentials: b.credentialHeaders(a),
	}
	b.body(&e.Request, []byte(a.shown), limit)
	if a.Err != nil {
		e.Error = b.redact.Text(a.Err.Error())
	}
	if a.Status != 0 {
		e.Response = &reports.Message{Status: a.Status, Header: b.shown(a.Header), DurationMS: ms(a.Took)}
		b.body(e.Response, a.Body, limit)
	}
	if b.Upstream == nil {
		return e
	}
	for _, entry := range b.Upstream.recorder.Journal().Entries(r.since) {
		if entry.Seq > r.until || len(e.Drupal) == keptUpstream {
			break
		}
		up := reports.Upstream{At: entry.Start.UTC(), User: b.redact.Text(entry.User), HTTP: b.redact.Text(entry.HTTPMethod + " " + entry.Path),
			Status: entry.Status, Fault: entry.Fault}
		if !entry.End.IsZero() { // else it has not ended yet
			up.DurationMS = ms(entry.End.Sub(entry.Start))
		}
		if len(entry.Calls) == 0 {
			e.Drupal = append(e.Drupal, up)
		}
		for _, call := range entry.Calls {
			up.Method, up.Ran, up.Params = b.redact.Text(call.Method), call.Ran, nil
			if params := []byte(b.redact.Text(string(call.Params))); len(params) <= limit && json.Valid(params) {
				up.Params = params
			}
			e.Drupal = append(e.Drupal, up)
		}
	}
	return e
}

func (b *Bridge) body(m *reports.Message, body []byte, limit int) {
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
		text, _ = strings.CutSuffix(b.redact.Text(text+redact.Cut), redact.Cut) // half a secret may be left at the end
	}
	if text = b.redact.Text(text); utf8.ValidString(text) {
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

func (b *Bridge) target(a *Answer) string {
	if a.RawQuery == "" {
		return b.url + a.Path
	}
	return b.url + a.Path + "?" + a.RawQuery
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// shown writes headers as one line each; those that carry credentials show only their scheme or their name.
func (b *Bridge) shown(h http.Header) map[string]string {
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
		lines[b.redact.Text(name)] = b.redact.Text(value)
	}
	return lines
}
