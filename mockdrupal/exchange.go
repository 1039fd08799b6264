package mockdrupal

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"bridgecheck/fixtures"
	"bridgecheck/mockdrupal/php"
)

// exchange is one request on its way through the site.
type exchange struct {
	d        *Drupal
	r        *http.Request
	state    *snapshot
	entry    *Entry
	verb     string // the HTTP method, as X-HTTP-Method-Override has it
	path     string // decoded, without /index.php and trailing slashes, as Drupal routes it
	caller   caller
	body     []byte
	rejected *Answer // why the credentials end the request, nil when they do not
	named    string  // the method that the path names; "" when it names none
	sketched []Call  // the JSON-RPC calls of the request, as far as they can be made out
	aborted  bool    // the caller went away while a method slept
}

// begun enters the route and the caller. A caller whose credentials end the request is refused later, by the route.
func (x *exchange) begun(rt *route, vars map[string]string) {
	anonymous, _ := x.state.site.User(fixtures.Anonymous)
	x.caller = caller{user: anonymous}
	if rt == nil {
		return
	}
	x.named = cmp.Or(vars["id"], vars["tool"])
	x.note(func(e *Entry) { e.Route = rt.name })
	if x.d.behind != nil {
		x.caller = named(x.r)
		x.note(func(e *Entry) { e.User, e.Scheme = x.caller.user.Name, x.caller.scheme })
		return
	}
	x.rejected = x.identify(rt.schemes(x.state.site))
	x.note(func(e *Entry) { e.User, e.Scheme = x.caller.name(), x.caller.scheme })
}

// sketches returns the JSON-RPC calls that the request seems to hold, for the faults that look for a method.
func (x *exchange) sketches() []Call {
	if x.sketched != nil {
		return x.sketched
	}
	message := x.message()
	x.sketched = []Call{}
	if x.named != "" {
		x.sketched = append(x.sketched, Call{Method: x.named})
	}
	if _, err := php.Decode(message); err != nil {
		return x.sketched
	}
	docs := php.Elements(message)
	if docs == nil {
		docs = [][]byte{message}
	}
	for _, doc := range docs {
		x.sketched = append(x.sketched, sketch(doc))
	}
	return x.sketched
}

// begin opens the journal's entry. Nothing of the body is read yet.
func (d *Drupal) begin(r *http.Request) *exchange {
	x := &exchange{d: d, r: r, verb: verb(r), state: d.state.Load(), path: drupalPath(r)}
	x.entry = &Entry{Start: time.Now(), Conn: d.conns.number(r), HTTPMethod: r.Method, Path: r.URL.Path,
		RawQuery: r.URL.RawQuery, Header: r.Header}
	d.journal.begin(x.entry)
	return x
}

// verb is the request's method as Symfony sees it: a POST may name another one in a header.
func verb(r *http.Request) string {
	if other := r.Header.Get("X-HTTP-Method-Override"); r.Method == http.MethodPost && other != "" {
		return strings.ToUpper(other)
	}
	return r.Method
}

// drupalPath is the path as Drupal's router sees it: without the front controller, decoded as PHP's urldecode does, and
// without slashes at the end.
func drupalPath(r *http.Request) string {
	p := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(p, "/index.php"); ok && (rest == "" || rest[0] == '/') {
		p = rest
	}
	if decoded, err := url.QueryUnescape(p); err == nil {
		p = decoded
	}
	return "/" + strings.Trim(p, "/")
}

// maxRequest is how much of a body the site reads: more is refused, as PHP's post_max_size has it.
const maxRequest = 64 << 20

func (x *exchange) readBody() error {
	body, err := io.ReadAll(io.LimitReader(x.r.Body, maxRequest))
	x.body = body
	if strings.HasPrefix(x.r.Header.Get("Content-Type"), "multipart/form-data") {
		x.body = nil // PHP takes such a body apart itself; Drupal sees none of it
	}
	x.d.journal.body(x.entry, body)
	return err
}

// note writes into the journal's entry.
func (x *exchange) note(change func(*Entry)) { x.d.journal.edit(x.entry, change) }

// query returns a parameter as PHP's $_GET has it: the last of several; isList when it was sent as name[].
func (x *exchange) query(name string) (value string, isList, has bool) {
	for _, pair := range strings.Split(x.r.URL.RawQuery, "&") {
		key, raw, _ := strings.Cut(pair, "=")
		key, value2 := phpUnescape(key), phpUnescape(raw)
		base, _, list := strings.Cut(key, "[")
		if base == name {
			value, isList, has = value2, list, true
		}
	}
	return value, isList, has
}

// phpUnescape is PHP's urldecode: a percent sign that starts no escape stands for itself.
func phpUnescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if u, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(u)
				i += 2
				continue
			}
		}
		if s[i] == '+' {
			b.WriteByte(' ')
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (x *exchange) format() string {
	f, _, _ := x.query("_format")
	return f
}

// base is where absolute links start: the scheme and host that the caller used.
func (x *exchange) base() string {
	scheme := "http"
	if x.r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + x.r.Host
}

// knownVerbs are the methods that PHP's web server lets through to Drupal.
var knownVerbs = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "COPY", "LOCK", "MKCOL", "MOVE",
	"PROPFIND", "PROPPATCH", "SEARCH", "UNLOCK", "REPORT", "MKACTIVITY", "CHECKOUT", "MERGE", "M-SEARCH", "NOTIFY", "SUBSCRIBE", "UNSUBSCRIBE"}

func isKnownVerb(verb string) bool { return slices.Contains(knownVerbs, verb) }
