package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// timeout is the longest that a site may take for one response.
const timeout = 30 * time.Second

// maxResponse is the longest response that is read.
const maxResponse = 256 << 20

// client sends the requests of records to one site, and keeps the sessions that it opened.
type client struct {
	base        string // scheme://host, with the path of a site below one
	host        string
	credentials CredentialsOf
	core        *mockdrupal.Core // the version of the site, where records are of another one; nil: they are not
	volatile    volatile
	http        *http.Client
	cookies     map[string]string
}

func newClient(base string, credentials CredentialsOf) (*client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a site: it must start with http:// or https:// and name a host", base)
	}
	return &client{
		base: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"), host: u.Host,
		credentials: credentials, volatile: loadVolatile(), cookies: map[string]string{},
		http: &http.Client{
			Timeout:       timeout,
			Transport:     &http.Transport{DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// Password is what a record's body holds in place of the account's password: it is put in when the request is sent, and
// never stored.
const Password = "{{password}}"

// compare finds where a response of the site differs from a record's.
func (c *client) compare(r Record, a Received) []Difference {
	return (&comparison{record: r, volatile: c.volatile, base: c.base, core: c.core}).run(a)
}

// coreOf finds the version of Drupal core at a URL by a page that every site has. A version that is given is not doubted.
func coreOf(ctx context.Context, address, given string) (*mockdrupal.Core, error) {
	if given != "" {
		core, err := mockdrupal.CoreOf(given)
		return &core, err
	}
	c, err := newClient(address, nil)
	if err != nil {
		return nil, err
	}
	defer c.close()
	page, err := c.do(ctx, Record{As: fixtures.Anonymous, Request: Request{Method: http.MethodGet, Path: "/user/login"}})
	if err != nil {
		return nil, err
	}
	core, ok := mockdrupal.DetectCore(page.Header)
	if !ok { // behind a proxy that removes headers, or of a version that is not known: as recorded
		core, err = mockdrupal.CoreOf("")
	}
	return &core, err
}

// UnreachableError means that a site accepts no connection.
type UnreachableError struct {
	URL    string
	Reason error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the site %s cannot be reached: %s", e.URL, e.Reason)
}
func (e *UnreachableError) Unwrap() error { return e.Reason }

// do sends a record's request and returns the response.
func (c *client) do(ctx context.Context, r Record) (Received, error) {
	var body io.Reader
	if r.Request.Body != nil {
		text := *r.Request.Body
		if strings.Contains(text, Password) {
			who, known := c.credentials(r.As)
			if !known {
				return Received{}, fmt.Errorf("record %s: no password is known for the account %s", r.ID, r.As)
			}
			text = strings.ReplaceAll(text, Password, who.Password)
		}
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.Request.Method, c.base+r.Request.Path, body)
	if err != nil {
		return Received{}, fmt.Errorf("record %s: %w", r.ID, err)
	}
	for name, value := range r.Request.Headers {
		req.Header.Set(name, value)
	}
	if req.Header.Get("User-Agent") == "" { // or else the one of Go's client
		req.Header.Set("User-Agent", "bridgecheck")
	}
	if err := c.sign(ctx, req, r); err != nil {
		return Received{}, fmt.Errorf("record %s: %w", r.ID, err)
	}
	return c.send(req)
}

// closedWithoutResponse reports whether an error of a request says that the connection ended before a response. PHP's own
// server does that to requests that it does not read, so it is something to record: status 0.
func closedWithoutResponse(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (c *client) send(req *http.Request) (Received, error) {
	ctx := req.Context()
	res, err := c.http.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return Received{}, fmt.Errorf("waiting for the site: %w", context.Cause(ctx))
	case closedWithoutResponse(err):
		return Received{}, nil
	case err != nil:
		return Received{}, &UnreachableError{c.base, err}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return Received{}, nil // cut short
	}
	return Received{Status: res.StatusCode, Header: res.Header, Body: data}, nil
}

// sign puts the record's credentials onto a request.
func (c *client) sign(ctx context.Context, req *http.Request, r Record) error {
	scheme, token, _ := strings.Cut(r.Auth, ":")
	if scheme == "none" || scheme == "" {
		return nil
	}
	who, known := c.credentials(r.As)
	if !known {
		who.Password = r.As + "-pass" // an account that does not exist has no right password
	}
	if wrong, ok := c.volatile.password(r); ok {
		who.Password = wrong
	}
	switch scheme {
	case "basic":
		req.SetBasicAuth(r.As, who.Password)
	case "bearer":
		value, ok := who.Tokens[token]
		if !ok {
			return fmt.Errorf("no bearer token %q is known for the account %s", token, r.As)
		}
		req.Header.Set("Authorization", "Bearer "+value)
	case "cookie":
		cookie, err := c.session(ctx, r.As, who.Password)
		if err != nil {
			return err
		}
		req.Header.Set("Cookie", cookie)
	default:
		return fmt.Errorf("auth must be none, basic, cookie, bearer or bearer:TOKEN; got %q", r.Auth)
	}
	return nil
}

var errLogin = errors.New("the site refuses the credentials")

// session returns the cookie of an open login of the account.
func (c *client) session(ctx context.Context, account, password string) (string, error) {
	if cookie := c.cookies[account]; cookie != "" {
		return cookie, nil
	}
	body, err := php.Encode(php.Map(php.Pair{Name: "name", Value: account}, php.Pair{Name: "pass", Value: password}))
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/user/login?_format=json", strings.NewReader(string(body)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return "", fmt.Errorf("logging in as %s: %w", account, err)
	}
	defer res.Body.Close()
	if cookies := res.Cookies(); res.StatusCode == http.StatusOK && len(cookies) > 0 {
		c.cookies[account] = cookies[0].Name + "=" + cookies[0].Value
		return c.cookies[account], nil
	}
	return "", fmt.Errorf("logging in as %s: %w (%s)", account, errLogin, res.Status)
}
