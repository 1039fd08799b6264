package mockdrupal

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// exchange is one request on its way through the site.
type exchange struct {
	d        *Drupal
	r        *http.Request
	state    *snapshot
	entry    *Entry
	verb     string // the HTTP method, as X-HTTP-Method-Override has it
	sent     string // the path as it was sent, without /index.php: Symfony's path info
	path     string // decoded and without trailing slashes, as Drupal routes it
	caller   caller
	body     []byte
	refused  *Answer // why the credentials end the request wherever it goes, nil when they do not
	rejected *Answer // why the credentials end the request on this route, nil when they do not
	named    string  // the method that the path names; "" when it names none
	sketched []Call  // the JSON-RPC calls of the request, as far as they can be made out
	aborted  bool    // the caller went away while a method slept
}

// begun enters the route and the caller. A caller whose credentials end the request is refused later, by the route.
func (x *exchange) begun(rt *route, vars map[string]string) {
	anonymous, _ := x.state.site.User(fixtures.Anonymous)
	x.caller = caller{user: anonymous}
	if rt != nil {
		x.named = cmp.Or(vars["id"], vars["tool"])
		x.note(func(e *Entry) { e.Route = rt.name })
	}
	if x.d.behind != nil {
		x.caller = named(x.r)
		x.note(func(e *Entry) { e.User, e.Scheme = x.caller.user.Name, x.caller.scheme })
		return
	}
	x.refused = x.identify()
	if rt != nil {
		x.rejected = x.filter(rt.schemes(x.state.site))
	}
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
	x := &exchange{d: d, r: r, verb: verb(r), state: d.state.Load(), sent: pathInfo(r)}
	x.path = drupalPath(x.sent)
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

// pathInfo is the path as it was sent, without the front controller.
func pathInfo(r *http.Request) string {
	p, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(p, "/") { // a proxy's form, or a test's
		p = r.URL.EscapedPath()
	}
	if rest, ok := strings.CutPrefix(p, "/index.php"); ok && (rest == "" || rest[0] == '/') {
		p = rest
	}
	return p
}

// drupalPath is the path as Drupal's router sees it: without slashes at the end, decoded as urldecode does by a path
// processor, then as rawurldecode does by the router.
func drupalPath(sent string) string {
	return rawUnescape(phpUnescape(strings.TrimRight(sent, "/")))
}

// maxRequest is how much of a body the site reads: more is refused, as PHP's post_max_size has it.
const maxRequest = 64 << 20

func (x *exchange) readBody() error {
	body, err := io.ReadAll(io.LimitReader(x.r.Body, maxRequest))
	x.body = body
	if kind := x.r.Header.Get("Content-Type"); x.r.Method == http.MethodPost && strings.HasPrefix(strings.ToLower(kind), "multipart/form-data") {
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
		base, index, list := strings.Cut(strings.TrimLeft(phpUnescape(key), " "), "[")
		if argument.Replace(base) == name && (!list || strings.Contains(index, "]")) {
			value, isList, has = phpUnescape(raw), list, true
		}
	}
	return value, isList, has
}

// argument writes an argument's name as $_GET has it.
var argument = strings.NewReplacer(".", "_", " ", "_")

// phpUnescape is PHP's urldecode.
func phpUnescape(s string) string { return rawUnescape(strings.ReplaceAll(s, "+", " ")) }

// rawUnescape is PHP's rawurldecode: a percent sign that starts no escape stands for itself.
func rawUnescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
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
		b.WriteByte(s[i])
	}
	return b.String()
}

// formatHTML is the format of a request that names none: Drupal does not look at Accept.
const formatHTML = "html"

// format is the format that the request asks for; ok is false for a list of them.
func (x *exchange) format() (name string, ok bool) {
	name, isList, has := x.query("_format")
	if !has {
		name = formatHTML
	}
	return name, !isList
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
