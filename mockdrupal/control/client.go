// Package control is the client of a mock site's control plane: it reads and changes the site, the journal, the faults
// and the clock of a mock that runs in another process. It is not the server: that is mockdrupal.Drupal.ControlHandler.
//
// Its invariant: a method of the client does what the method of mockdrupal.Drupal with the same name does. Requests and
// responses are JSON, the site is a site file.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
)

// Client talks to the control plane of one mock. It is safe for use by many goroutines.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// New returns a client for the control plane at an address, as `http://127.0.0.1:8082`; token may be empty where the
// mock needs none.
func New(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a control plane: it must start with http:// or https:// and name a host", address)
	}
	return &Client{base: strings.TrimSuffix(address, "/") + Prefix, token: token, http: &http.Client{Timeout: time.Minute}}, nil
}

// Ask asks whether a mock serves the site at an address, as `127.0.0.1:8080`.
func Ask(ctx context.Context, address string) (About, bool) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+AboutPath, nil)
	if err != nil {
		return About{}, false
	}
	response, err := (&http.Transport{}).RoundTrip(r)
	if err != nil {
		return About{}, false
	}
	defer response.Body.Close()
	var a About
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<12)).Decode(&a)
	return a, err == nil && a.Mock != ""
}

const askTime = 2 * time.Second

// Error is the mock's refusal of a call.
type Error struct {
	Status  int
	Message string // what was wrong, and where
}

func (e *Error) Error() string { return fmt.Sprintf("the mock refuses (%d): %s", e.Status, e.Message) }

// maxResponse is the longest response that is read: the site file of 100,000 methods.
const maxResponse = 512 << 20

// longestError is how many bytes of a refusal are shown.
const longestError = 1 << 10

// do sends a request; in is sent as JSON unless it is []byte (YAML), out is read as JSON unless it is *[]byte.
func (c *Client) do(ctx context.Context, verb, path string, in, out any) error {
	var body []byte
	contentType := "application/json"
	switch in := in.(type) {
	case nil:
	case []byte:
		body, contentType = in, "application/yaml"
	default:
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("writing the request to the mock: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, verb, c.base+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("calling the mock: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("calling the mock: %w", err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	if err != nil {
		return fmt.Errorf("reading the mock's response: %w", err)
	}
	if res.StatusCode >= 400 {
		var refusal struct{ Error string }
		if err := json.Unmarshal(text, &refusal); err != nil || refusal.Error == "" {
			refusal.Error = "there is no control plane at " + c.base
			if res.StatusCode >= http.StatusInternalServerError {
				refusal.Error = fmt.Sprintf("%s %s fails with %d: see the log of the site", verb, c.base+path, res.StatusCode)
			}
		}
		return &Error{res.StatusCode, exact.Cut(refusal.Error, longestError)}
	}
	switch out := out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = text
		return nil
	default:
		if err := json.Unmarshal(text, out); err != nil {
			return fmt.Errorf("reading the mock's response to %s %s: %w", verb, path, err)
		}
		return nil
	}
}

// Site returns the site as it is now.
func (c *Client) Site(ctx context.Context) (*fixtures.Site, error) {
	var text []byte
	if err := c.do(ctx, http.MethodGet, "site", nil, &text); err != nil {
		return nil, err
	}
	return fixtures.Parse("site", text)
}

// SetSite replaces the site.
func (c *Client) SetSite(ctx context.Context, site *fixtures.Site) error {
	text, err := site.JSON() // which every reader of YAML takes, and PHP too
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPut, "site", []byte(text), nil)
}

// Patch changes the site as one step.
func (c *Client) Patch(ctx context.Context, p patch.Patch) error {
	return c.do(ctx, http.MethodPatch, "site", p, nil)
}

// Journal returns the entries that the filter selects.
func (c *Client) Journal(ctx context.Context, f journal.Filter) (JournalPage, error) {
	q := url.Values{}
	for name, n := range map[string]int64{"after": f.After, "status": int64(f.Status), "limit": int64(f.Limit)} {
		if n != 0 {
			q.Set(name, strconv.FormatInt(n, 10))
		}
	}
	for name, text := range map[string]string{"user": f.User, "method": f.Method, "route": f.Route, "fault": f.Fault} {
		if text != "" {
			q.Set(name, text)
		}
	}
	if f.Ran {
		q.Set("ran", "true")
	}
	var page JournalPage
	err := c.do(ctx, http.MethodGet, "journal?"+q.Encode(), nil, &page)
	return page, err
}

// ClearJournal forgets all entries.
func (c *Client) ClearJournal(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "journal", nil, nil)
}

// Runs returns how often a method ran.
func (c *Client) Runs(ctx context.Context, method string) (int64, error) {
	var r struct{ Runs int64 }
	err := c.do(ctx, http.MethodGet, "runs/"+url.PathEscape(method), nil, &r)
	return r.Runs, err
}

// Arm puts a fault in force and returns its number.
func (c *Client) Arm(ctx context.Context, f fault.Fault) (int64, error) {
	var armed struct{ ID int64 }
	err := c.do(ctx, http.MethodPost, "faults", f, &armed)
	return armed.ID, err
}

// Faults returns the armed faults.
func (c *Client) Faults(ctx context.Context) ([]fault.Armed, error) {
	var list []fault.Armed
	err := c.do(ctx, http.MethodGet, "faults", nil, &list)
	return list, err
}

// Disarm ends the fault with this number.
func (c *Client) Disarm(ctx context.Context, id int64) error {
	return c.do(ctx, http.MethodDelete, "faults/"+strconv.FormatInt(id, 10), nil, nil)
}

// DisarmAll ends all faults.
func (c *Client) DisarmAll(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "faults", nil, nil)
}

// SetQuirk switches a quirk of the recorded site on or off.
func (c *Client) SetQuirk(ctx context.Context, name string, on bool) error {
	return c.do(ctx, onOff(on), "quirks/"+url.PathEscape(name), nil, nil)
}

// SetFlood switches flood control on or off; either way all failures are forgotten.
func (c *Client) SetFlood(ctx context.Context, on bool) error {
	return c.do(ctx, onOff(on), "flood", nil, nil)
}

func onOff(on bool) string {
	if on {
		return http.MethodPut
	}
	return http.MethodDelete
}

// Advance moves the site's clock and returns what it shows then.
func (c *Client) Advance(ctx context.Context, by time.Duration) (time.Time, error) {
	var clock struct{ Now time.Time }
	err := c.do(ctx, http.MethodPost, "clock", Advance{fault.Duration(by)}, &clock)
	return clock.Now, err
}

// Freeze makes methods whose id matches the pattern wait for Step; an empty pattern lets all go.
func (c *Client) Freeze(ctx context.Context, pattern string) error {
	if pattern == "" {
		return c.do(ctx, http.MethodDelete, "freeze", nil, nil)
	}
	return c.do(ctx, http.MethodPut, "freeze", Freeze{pattern}, nil)
}

// Waiting returns how many calls sleep now.
func (c *Client) Waiting(ctx context.Context) (int, error) {
	var w struct{ Waiting int }
	err := c.do(ctx, http.MethodGet, "waiting", nil, &w)
	return w.Waiting, err
}

// Step lets the n calls continue that have slept longest, and returns how many there were.
func (c *Client) Step(ctx context.Context, n int) (int, error) {
	var s struct{ Stepped int }
	err := c.do(ctx, http.MethodPost, "step", Step{n}, &s)
	return s.Stepped, err
}

// ClearCaches empties the site's page cache.
func (c *Client) ClearCaches(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "caches", nil, nil)
}
