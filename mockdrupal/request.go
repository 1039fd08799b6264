package mockdrupal

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
)

// Response is a response of the site before it is sent.
type Response = exchange.Response

// request is an exchange on its way through the site.
type request struct {
	*exchange.Exchange
	d        *Drupal
	state    *snapshot
	caller   caller
	refused  *Response // why the credentials end the request wherever it goes, nil when they do not
	rejected *Response // why the credentials end the request on this route, nil when they do not
	protocol *Protocol // that the request speaks; nil: that of the site
}

// begin routes the request and authenticates its caller. A caller whose credentials end the request is refused later, by
// the route.
func (d *Drupal) begin(e *exchange.Exchange) (respond func()) {
	x := &request{Exchange: e, d: d, state: d.state.Load()}
	anonymous, _ := x.state.site.User(fixtures.Anonymous)
	x.caller = caller{user: anonymous}
	at, vars := d.find(x)
	x.refused = x.identify()
	if at != nil {
		x.Route, x.Named = at.name, cmp.Or(vars["id"], vars["tool"])
		x.rejected = x.filter(at.schemes(x.state.site))
	}
	x.User, x.Title = x.caller.user.Name, x.state.site.Title
	if x.caller.scheme == "" {
		x.MaxBody = maxAnonymousBody
	}
	if at != nil {
		x.read(at.protocol)
	}
	x.NoteCaller(x.caller.name(), x.caller.scheme)
	return func() { x.makeResponse(at, vars) }
}

// maxAnonymousBody is how much the site reads of what callers send who are refused, most of them.
const maxAnonymousBody = 1 << 20

// makeResponse makes the response, from a former state of the site where a fault wants that.
func (x *request) makeResponse(at *address, vars map[string]string) {
	if past, ok := x.Past.(*snapshot); ok {
		x.state = past
	}
	if kind := x.Request.Header.Get("Content-Type"); x.Request.Method == http.MethodPost && strings.HasPrefix(strings.ToLower(kind), "multipart/form-data") {
		x.Body = nil // PHP parses such a body itself; Drupal sees none of it
	}
	x.Response = x.dispatch(at, vars)
	x.finish(x.Response)
}

// formatHTML is the format of a request that names none: Drupal does not look at Accept.
const formatHTML = "html"

// format is the format that the request asks for; ok is false for a list of them.
func (x *request) format() (name string, ok bool) {
	name, isList, has := x.Query("_format")
	if !has {
		name = formatHTML
	}
	return name, !isList
}

// base is where absolute links start, as Symfony has it: the scheme and host that the client used, in lower case and without the
// scheme's own port, and the front controller where the path names it.
func (x *request) base() string {
	scheme, port := "http", ":80"
	if x.Request.TLS != nil {
		scheme, port = "https", ":443"
	}
	base := scheme + "://" + strings.TrimSuffix(strings.ToLower(x.Request.Host), port)
	if path := x.Request.URL.EscapedPath(); path == frontController || strings.HasPrefix(path, frontController+"/") {
		base += frontController
	}
	return base
}

const frontController = "/index.php"

// knownVerbs are the methods that PHP's web server lets through to Drupal.
var knownVerbs = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "COPY", "LOCK", "MKCOL", "MOVE",
	"PROPFIND", "PROPPATCH", "SEARCH", "UNLOCK", "REPORT", "MKACTIVITY", "CHECKOUT", "MERGE", "M-SEARCH", "NOTIFY", "SUBSCRIBE", "UNSUBSCRIBE"}

func isKnownVerb(verb string) bool { return slices.Contains(knownVerbs, verb) }
