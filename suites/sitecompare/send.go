package sitecompare

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/transcript"
)

// Request is a request to a site, without its credentials.
type Request struct {
	As   string `json:"as"` // the account; anonymous for none
	Verb string `json:"verb"`
	Path string `json:"path"`
	Body string `json:"body,omitempty"` // of GET, HEAD and OPTIONS: the argument query
}

// String shows the request for people.
func (r Request) String() string {
	text := r.Verb + " " + r.Path + " as " + r.As
	if r.Body != "" {
		text += ": " + shorten(strconv.QuoteToGraphic(r.Body))
	}
	return text
}

var methodName = regexp.MustCompile(`"method": ?("[^"]+")`)

// inQuery reports whether the request carries its calls in the query, not in a body.
func (r Request) inQuery() bool {
	return r.Verb == http.MethodGet || r.Verb == http.MethodHead || r.Verb == http.MethodOptions
}

// about is what makes differences the same one: the methods that are called, or the whole request where it names none.
// HEAD and OPTIONS run no method, so that they differ for other reasons.
func (r Request) about() string {
	if called := methodName.FindAllString(r.Body, -1); called != nil {
		about := strings.Join(called, " ")
		if r.Verb == http.MethodHead || r.Verb == http.MethodOptions {
			about = r.Verb + " " + about
		}
		return about
	}
	return r.Verb + " " + r.Path + "\n" + r.Body
}

// nobody is an account that no site has.
const nobody = "nobody"

// refusedAccounts are those whose requests a site with flood control counts as failed logins.
func refusedAccounts(site *fixtures.Site) map[string]bool {
	refused := map[string]bool{nobody: true}
	for _, u := range site.Users {
		refused[u.Name] = u.Blocked
	}
	return refused
}

// maxRefused is how many such requests are generated, and how many are sent to shrink others: fifty in an hour lock an address
// out. Each generated one may be sent twice.
const maxRefused = 15

type received struct {
	status int // 0: the connection was closed without a response
	header http.Header
	body   []byte
}

// side is one of the two sites.
type side struct {
	base        *url.URL
	credentials transcript.CredentialsOf
	http        *http.Client
}

const timeout = 30 * time.Second

func newSide(address string, credentials transcript.CredentialsOf) (side, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return side{}, fmt.Errorf("%q is not the address of a site: it must start with http:// or https:// and name a host", address)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return side{u, credentials, &http.Client{
		Timeout: timeout,
		// A connection for each request: one that is closed between two requests is no response to the second.
		Transport:     &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

const maxResponse = 64 << 20

// send fails when the site accepts no connection. A connection that it closes is a result.
func (s side) send(ctx context.Context, r Request) (received, error) {
	address := s.base.String() + r.Path
	var body io.Reader
	if r.inQuery() {
		if r.Body != "" {
			address += "?query=" + url.QueryEscape(r.Body)
		}
	} else {
		body = strings.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Verb, address, body)
	if err != nil {
		return received{}, fmt.Errorf("the request %s: %w", r, err)
	}
	req.Header.Set("User-Agent", "bridgecheck")
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.As != fixtures.Anonymous {
		who, known := s.credentials(r.As)
		if !known {
			who.Password = r.As + "-pass"
		}
		req.SetBasicAuth(r.As, who.Password)
	}
	res, err := s.http.Do(req)
	if err == nil {
		defer res.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
		return received{}, fmt.Errorf("the request %s: %w", r, context.Cause(ctx))
	case transcript.ClosedWithoutResponse(err):
		return received{}, nil
	case err != nil:
		return received{}, &UnreachableError{s.base.Redacted(), err}
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return received{}, nil // cut short
	}
	return received{res.StatusCode, res.Header, s.relocate(data)}, nil
}

// relocate puts one address in place of the site's own, as JSON and HTML have it.
func (s side) relocate(body []byte) []byte {
	address := s.base.String()
	for _, escaped := range []string{address, strings.ReplaceAll(address, "/", `\/`)} {
		body = bytes.ReplaceAll(body, []byte(escaped), []byte("SITE"))
	}
	return body
}

// comparedHeaders are those that mean something to a client, and those that the site's methods set.
func comparedHeaders(site *fixtures.Site) []string {
	names := []string{"Content-Type", "Www-Authenticate", "Allow", "Location"}
	for _, m := range site.Methods {
		for name := range m.ResponseHeaders {
			if name = http.CanonicalHeaderKey(name); !slices.Contains(names, name) && name != "Cache-Control" {
				names = append(names, name)
			}
		}
	}
	return names
}

// compare returns where two responses differ, "" where they are the same: status, headers, and the body byte for byte; of a
// page, its title.
func compare(mock, site received, headers []string) (where, wanted, got string) {
	if mock.status != site.status {
		return "status", summary(mock), summary(site)
	}
	for _, name := range headers {
		if m, s := mock.header.Get(name), site.header.Get(name); m != s {
			return "header " + name, orNone(m), orNone(s)
		}
	}
	if strings.HasPrefix(mock.header.Get("Content-Type"), "text/html") {
		if m, s := title(mock.body), title(site.body); m != s {
			return "title", m, s
		}
		return "", "", ""
	}
	m, s := transcript.WithoutVolatile(mock.body), transcript.WithoutVolatile(site.body)
	if bytes.Equal(m, s) {
		return "", "", ""
	}
	at := 0
	for at < min(len(m), len(s)) && m[at] == s[at] {
		at++
	}
	from := max(0, at-40)
	return "body", excerpt(m, from), excerpt(s, from)
}

func summary(r received) string {
	if r.status == 0 {
		return "no response"
	}
	return shorten(strconv.Itoa(r.status) + " " + string(r.body))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

var titleTag = regexp.MustCompile(`(?is)<title>(.*?)</title>`)

func title(page []byte) string {
	if m := titleTag.FindSubmatch(page); m != nil {
		return html.UnescapeString(strings.TrimSpace(string(m[1])))
	}
	return "none"
}

// shown is how much of a text a report shows.
const shown = 300

func shorten(s string) string {
	if len(s) > shown {
		return s[:shown] + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

func excerpt(body []byte, from int) string {
	text := string(body[from:])
	if from > 0 {
		text = "…" + text
	}
	return shorten(text)
}
