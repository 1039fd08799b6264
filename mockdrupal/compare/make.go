package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// RecordOptions say what to record where.
type RecordOptions struct {
	URL         string // the site
	Cases       string // file of cases: records without a response, one a line
	Out         string // directory for the recordings, one file an area; made when it is not there
	Credentials CredentialsOf
	// Progress is called after every case. May be nil.
	Progress func(done, all int, id string)
}

// unrecorded are the headers kept out of recordings: what is the client's, the connection's or a secret.
var unrecorded = []string{"Date", "Host", "Connection", "Keep-Alive", "X-Powered-By", "Content-Length", "Transfer-Encoding", "Server"}

// MakeRecordings sends the cases of a file to a site, in order, and writes its responses as recordings that Verify
// reads. Credentials are asked for by account and never stored: not the Authorization and Cookie headers, no cookie's
// value, no token in a response. It fails on the first case that gets no response; what was recorded before is kept.
func MakeRecordings(ctx context.Context, o RecordOptions) error {
	cases, err := loadCases(o.Cases)
	if err != nil {
		return err
	}
	if o.Credentials == nil {
		o.Credentials = func(string) (Credentials, bool) { return Credentials{}, false }
	}
	c, err := newClient(o.URL, o.Credentials)
	if err != nil {
		return err
	}
	if err := c.mustKnow(cases); err != nil {
		return err
	}
	defer c.close()
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return fmt.Errorf("creating the directory for the recordings: %w", err)
	}
	areas := map[string]*bytes.Buffer{}
	write := func() error {
		for _, area := range slices.Sorted(maps.Keys(areas)) {
			file := filepath.Join(o.Out, area+".jsonl")
			if err := os.WriteFile(file, areas[area].Bytes(), 0o644); err != nil {
				return fmt.Errorf("writing the recordings: %w", err)
			}
		}
		return nil
	}
	for i, r := range cases {
		recorded, err := c.record(ctx, r)
		if err != nil {
			return errors.Join(fmt.Errorf("recording: %w", err), write())
		}
		line, err := json.Marshal(recorded)
		if err != nil {
			return fmt.Errorf("record %s: %w", r.ID, err)
		}
		area, _, _ := strings.Cut(r.ID, "/")
		if areas[area] == nil {
			areas[area] = &bytes.Buffer{}
		}
		areas[area].Write(append(line, '\n'))
		if o.Progress != nil {
			o.Progress(i+1, len(cases), r.ID)
		}
	}
	return write()
}

// mustKnow fails where the cases need credentials that are not given: the site would refuse them, and the refusal be recorded.
func (c *client) mustKnow(cases []Record) error {
	var unknown []string
	for _, r := range cases {
		scheme, _, _ := strings.Cut(r.Auth, ":")
		_, isWrong := c.volatile.password(r)
		if scheme == "none" || scheme == "" || isWrong || slices.Contains(unknown, r.As) {
			continue
		}
		if who, known := c.credentials(r.As); !known || scheme != "bearer" && who.Password == "" {
			unknown = append(unknown, r.As)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("no password is given for the account %s: set %s, or give a file of credentials; any will do for an account "+
		"that the site does not have", strings.Join(unknown, ", "), passwordVariable(unknown[0]))
}

// loadCases reads a file of cases.
func loadCases(file string) ([]Record, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the cases: %w", err)
	}
	var cases []Record
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, err := ParseRecord(line)
		area, name, ok := strings.Cut(r.ID, "/")
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		case !ok || area == "" || name == "" || strings.ContainsAny(area, `\.`):
			return nil, fmt.Errorf("%s:%d: the id %q must be AREA/NAME, for the area names its file", file, i+1, r.ID)
		}
		cases = append(cases, r)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%s holds no cases", file)
	}
	return cases, nil
}

// record sends one case and returns it with the response.
func (c *client) record(ctx context.Context, r Record) (Record, error) {
	a, err := c.do(ctx, r)
	if err != nil {
		return r, err
	}
	r.Site = c.host
	r.Request.Headers = maps.Clone(r.Request.Headers)
	maps.DeleteFunc(r.Request.Headers, func(name, _ string) bool { return contains([]string{"Authorization", "Cookie"}, name) })
	r.Response = c.volatile.response(r, a)
	return r, nil
}

// response is what a recording keeps of a response.
func (v volatile) response(r Record, a Received) Response {
	kept := Response{Status: a.Status, Headers: map[string]string{}}
	for name, values := range a.Header {
		if !contains(unrecorded, name) {
			kept.Headers[name] = strings.Join(values, ", ")
		}
	}
	if a.Header.Get("Set-Cookie") != "" {
		kept.Headers["Set-Cookie"] = "<set>"
	}
	if m := titleTag.FindSubmatch(a.Body); m != nil && strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
		kept.HTMLTitle = html.UnescapeString(strings.TrimSpace(string(m[1])))
		return kept
	}
	body := string(v.redact(r, a))
	kept.Body = &body
	return kept
}

// redact puts a name in place of the tokens of a response.
func (v volatile) redact(r Record, a Received) []byte {
	body := a.Body
	shapes := v.shapes(r)
	for _, m := range php.Members(a.Body) {
		if a.Status == http.StatusOK && slices.Contains(shapes, m.Name) && len(m.Raw) > 0 && m.Raw[0] == '"' {
			body = bytes.ReplaceAll(body, m.Raw, []byte(`"<`+m.Name+`>"`))
		}
	}
	return body
}
