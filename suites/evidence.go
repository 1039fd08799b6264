package suites

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"bridgecheck/reports"
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
	b.exchanges, b.blamed, b.inCheck = nil, nil, true
	if b.Drupal != nil {
		b.Drupal.Mark()
	}
}

func (b *Bridge) record(a *Answer, since int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.exchanges = append(b.exchanges, &recorded{a, since, b.Drupal.last()})
}

// blame marks the answer that a failing matcher looked at, so that the curl line reproduces that one.
func (a *Answer) blame() {
	a.bridge.mu.Lock()
	defer a.bridge.mu.Unlock()
	a.bridge.blamed = a
}

// evidence writes down what the finished check has seen.
func (b *Bridge) evidence(failed bool) (kept []reports.Exchange, curl string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, limit, body := b.exchanges, keptPassing, keptPassingBody
	if failed {
		limit, body = keptExchanges, keptBody
	}
	chosen := all
	if len(all) > limit {
		chosen = append(slices.Clone(all[:limit/4]), all[len(all)-(limit-limit/4):]...)
		if i := slices.IndexFunc(all, func(r *recorded) bool { return r.answer == b.blamed }); i >= limit/4 && i < len(all)-(limit-limit/4) {
			chosen[limit/4] = all[i]
		}
	}
	kept = []reports.Exchange{}
	for _, r := range chosen {
		kept = append(kept, b.exchange(r, body))
	}
	if failed && len(all) > 0 {
		last := all[len(all)-1].answer
		if b.blamed != nil {
			last = b.blamed
		}
		curl = b.curl(last)
	}
	return kept, curl
}

func (b *Bridge) exchange(r *recorded, limit int) reports.Exchange {
	a := r.answer
	e := reports.Exchange{
		Identity: a.Who.String(), At: a.At.UTC(), Drupal: []reports.Upstream{},
		Request: reports.Message{Method: a.Method, URL: b.redact.text(b.target(a)), Header: b.redact.header(a.Sent)},
	}
	b.body(&e.Request, []byte(a.shown), limit)
	if a.Err != nil {
		e.Error = b.redact.text(a.Err.Error())
	}
	if a.Status != 0 {
		e.Response = &reports.Message{Status: a.Status, Header: b.redact.header(a.Header), DurationMS: ms(a.Took)}
		b.body(e.Response, a.Body, limit)
	}
	if b.Drupal == nil {
		return e
	}
	for _, entry := range b.Drupal.mock.Journal().Entries(r.since) {
		if entry.Seq > r.until || len(e.Drupal) == keptUpstream {
			break
		}
		up := reports.Upstream{At: entry.Start.UTC(), User: entry.User, HTTP: entry.HTTPMethod + " " + entry.Path,
			Status: entry.Status, Fault: entry.Fault, DurationMS: ms(entry.End.Sub(entry.Start))}
		if len(entry.Calls) == 0 {
			e.Drupal = append(e.Drupal, up)
		}
		for _, call := range entry.Calls {
			up.Method, up.Ran, up.Params = call.Method, call.Ran, nil
			if len(call.Params) <= limit {
				up.Params = []byte(b.redact.text(string(call.Params)))
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
	if !utf8.Valid(body) {
		m.Encoding, m.Body = "base64", base64.StdEncoding.EncodeToString([]byte(b.redact.text(string(body))))
		return
	}
	m.Body = b.redact.text(string(body))
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

// curl is a command line that sends the request again. Credentials stand as shell variables.
func (b *Bridge) curl(a *Answer) string {
	parts := []string{"curl", "-i"}
	if a.Method != http.MethodGet {
		parts = append(parts, "-X", a.Method)
	}
	variable := strings.ToUpper(shellName(a.Who.String()))
	for _, name := range slices.Sorted(mapsKeys(a.Sent)) {
		for _, value := range a.Sent[name] {
			scheme, _, _ := strings.Cut(value, " ")
			switch {
			case name == "Authorization" && scheme == "Basic":
				parts = append(parts, "-u", fmt.Sprintf(`"%s:$%s_PASSWORD"`, shellSafe(a.Who.String()), variable))
			case name == "Authorization":
				parts = append(parts, "-H", fmt.Sprintf(`"Authorization: %s $%s_TOKEN"`, shellSafe(scheme), variable))
			case name == "Cookie":
				parts = append(parts, "-H", fmt.Sprintf(`"Cookie: $%s_COOKIE"`, variable))
			default:
				parts = append(parts, "-H", quote(b.redact.text(name+": "+value)))
			}
		}
	}
	if a.shown != "" {
		parts = append(parts, "--data-binary", quote(b.redact.text(a.shown)))
	}
	return strings.Join(append(parts, quote(b.redact.text(b.target(a)))), " ")
}

func mapsKeys(h http.Header) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range h {
			if !yield(name) {
				return
			}
		}
	}
}

// quote makes s one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func shellName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}

func shellSafe(s string) string { return shellName(s) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// redactor takes secrets out of all that a report shows: by value, wherever they turn up.
type redactor struct {
	mu     sync.Mutex
	values []string
	old    *strings.Replacer
}

const redacted = "[redacted]"

func (r *redactor) add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) < 4 || slices.Contains(r.values, s) {
			continue
		}
		r.values, r.old = append(r.values, s), nil
	}
}

func (r *redactor) text(s string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.old == nil {
		var pairs []string
		byLength := slices.Clone(r.values)
		slices.SortFunc(byLength, func(a, b string) int { return len(b) - len(a) })
		for _, v := range byLength {
			pairs = append(pairs, v, redacted)
		}
		r.old = strings.NewReplacer(pairs...)
	}
	return r.old.Replace(s)
}

// header shows headers as one line each; those that carry credentials show only their scheme.
func (r *redactor) header(h http.Header) map[string]string {
	shown := map[string]string{}
	for name, values := range h {
		value := strings.Join(values, ", ")
		switch http.CanonicalHeaderKey(name) {
		case "Authorization", "Proxy-Authorization":
			scheme, _, _ := strings.Cut(value, " ")
			value = scheme + " " + redacted
		case "Cookie", "Set-Cookie":
			key, _, _ := strings.Cut(value, "=")
			value = key + "=" + redacted
		}
		shown[name] = r.text(value)
	}
	return shown
}
