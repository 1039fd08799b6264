package compare

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// Generated is a generated request, without its credentials.
type Generated struct {
	As   string `json:"as"` // the account; anonymous for none
	Verb string `json:"verb"`
	Path string `json:"path"`
	Body string `json:"body,omitempty"` // of GET, HEAD and OPTIONS: the argument query
}

// String shows the request for people.
func (g Generated) String() string {
	text := g.Verb + " " + g.Path + " as " + g.As
	if g.Body != "" {
		text += ": " + shorten(strconv.QuoteToGraphic(g.Body))
	}
	return text
}

// record is the request as a record that has no response yet.
func (g Generated) record() Record {
	r := Record{ID: g.String(), As: g.As, Auth: "basic"}
	r.Request = Request{Method: g.Verb, Path: g.Path, Headers: map[string]string{"Accept": "application/json"}}
	if g.As == fixtures.Anonymous {
		r.Auth = "none"
	}
	switch {
	case g.Verb != http.MethodGet && g.Verb != http.MethodHead && g.Verb != http.MethodOptions:
		r.Request.Headers["Content-Type"], r.Request.Body = "application/json", &g.Body
	case g.Body != "":
		r.Request.Path += "?query=" + url.QueryEscape(g.Body)
	}
	return r
}

var methodName = regexp.MustCompile(`"method": ?("[^"]+")`)

// about identifies a difference: the methods that are called, or the whole request where it names none. HEAD and OPTIONS run
// no method, so that they differ for other reasons.
func (g Generated) about() string {
	if called := methodName.FindAllString(g.Body, -1); called != nil {
		about := strings.Join(called, " ")
		if g.Verb == http.MethodHead || g.Verb == http.MethodOptions {
			about = g.Verb + " " + about
		}
		return about
	}
	return g.Verb + " " + g.Path + "\n" + g.Body
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

// GenerateOptions say what to compare and how much.
type GenerateOptions struct {
	Site        *fixtures.Site // what both serve
	URL         string         // the site
	Credentials CredentialsOf  // nil: those of Site
	Requests    int            // how many to generate
	Seed        uint64
	Drupal      string                           // the version of the site's Drupal core; "": the one that it shows
	JSONRPC     int                              // the line of the site's jsonrpc module; 0: 3
	Max         int                              // differences to find before it ends; 0: 20
	Progress    func(done, all, differences int) // called after every request; may be nil
}

// GeneratedReport is what a comparison by generated requests found.
type GeneratedReport struct {
	Seed        uint64                `json:"seed"`
	Drupal      string                `json:"drupal"`   // the version that the site is compared as
	Requests    int                   `json:"requests"` // generated and sent
	Closed      int                   `json:"closed"`   // to which both closed the connection without a response
	Left        []string              `json:"left_out"` // methods that are not called, and why
	Differences []GeneratedDifference `json:"differences"`
	Stopped     bool                  `json:"stopped,omitempty"` // there were as many differences as it looks for
}

// GeneratedDifference is a smallest request to which the responses differ.
type GeneratedDifference struct {
	Request Generated `json:"request"`
	Where   string    `json:"where"` // as that of a Difference
	Mock    string    `json:"mock"`
	Site    string    `json:"site"`
	First   Generated `json:"generated"` // the request that was generated
}

// part is the part of the response that differs: where, without the place in it.
func (d GeneratedDifference) part() string {
	part, _, _ := strings.Cut(d.Where, " /")
	return part
}

// Agrees reports whether there is no difference.
func (r *GeneratedReport) Agrees() bool { return len(r.Differences) == 0 }

// Write prints the report for people.
func (r *GeneratedReport) Write(w io.Writer) error {
	var b strings.Builder
	for _, left := range r.Left {
		fmt.Fprintf(&b, "not called: %s\n", left)
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "DIFFERS %s\n  %s\n  mock: %s\n  site: %s\n", d.Request, d.Where, d.Mock, d.Site)
	}
	writeLeftOut(&b, r.Drupal)
	if r.Stopped {
		fmt.Fprintf(&b, "stopped at %d differences\n", len(r.Differences))
	}
	fmt.Fprintf(&b, "%d generated requests (seed %d), %d differences", r.Requests, r.Seed, len(r.Differences))
	if r.Closed > 0 {
		fmt.Fprintf(&b, ", %d without a response from either", r.Closed)
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

const maxDifferences = 20

// Generate sends generated requests to a site and to the mock of its site file, and shrinks each request to which the responses
// differ. The requests depend on the site file, the number and the seed alone, and both receive the same bytes in the same
// order. It fails when the site cannot be reached.
func Generate(ctx context.Context, o GenerateOptions) (*GeneratedReport, error) {
	if o.Requests < 1 {
		return nil, fmt.Errorf("%d requests compare nothing; give 1 or more", o.Requests)
	}
	core, err := coreOf(ctx, o.URL, o.Drupal)
	if err != nil {
		return nil, err
	}
	d, err := mockdrupal.New(o.Site, mockdrupal.Options{JSONRPC: o.JSONRPC, Drupal: core.Version})
	if err != nil {
		return nil, err
	}
	server, err := d.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer server.Close()
	if o.Credentials == nil {
		o.Credentials = SiteCredentials(o.Site)
	}
	mock, err := newClient(server.URL, o.Credentials)
	if err != nil {
		return nil, err
	}
	site, err := newClient(o.URL, o.Credentials)
	if err != nil {
		return nil, err
	}
	for _, c := range []*client{mock, site} {
		// A connection that is closed between two requests is no response to the second, so each request has its own.
		c.http.Transport.(*http.Transport).DisableKeepAlives = true
	}
	g := newGenerator(o.Site, newDice(o.Seed))
	p := &pair{mock: mock, site: site, refuses: refusedAccounts(o.Site), seen: map[string]bool{},
		report: &GeneratedReport{Seed: o.Seed, Drupal: core.Version, Left: g.left, Differences: []GeneratedDifference{}}}
	if err := p.recognise(ctx, g.callers); err != nil {
		return nil, err
	}
	for p.report.Requests < o.Requests {
		if err := p.try(ctx, g.request()); err != nil {
			return nil, err
		}
		if o.Progress != nil {
			o.Progress(p.report.Requests, o.Requests, len(p.report.Differences))
		}
		if p.report.Stopped = len(p.report.Differences) >= cmp.Or(o.Max, maxDifferences); p.report.Stopped {
			break
		}
	}
	return p.report, nil
}

// pair is a mock and the site that is compared with it.
type pair struct {
	mock, site *client
	refuses    map[string]bool // accounts
	refused    int             // requests of these accounts that were sent to shrink others
	report     *GeneratedReport
	seen       map[string]bool // what the smallest requests that were found are about, and where
}

// recognise refuses a site that shows no account its methods though the mock does: then every request would differ.
func (p *pair) recognise(ctx context.Context, accounts []string) error {
	var refusal error
	for _, name := range accounts {
		found, _, err := p.differ(ctx, Generated{As: name, Verb: http.MethodGet, Path: methodsPath})
		if err != nil {
			return err
		}
		if found == nil || found.Where != "status" {
			return nil
		}
		refusal = fmt.Errorf("the site responds to GET %s as %s with %s, the mock with %s: install there what the site file describes, and switch it on", methodsPath, name, found.Site, found.Mock)
	}
	return refusal
}

const methodsPath = "/jsonrpc/methods"

// try sends one request to both sides, and shrinks it where the responses differ.
func (p *pair) try(ctx context.Context, r Generated) error {
	p.report.Requests++
	found, closed, err := p.differ(ctx, r)
	if err != nil {
		return err
	}
	if closed {
		p.report.Closed++
	}
	if found == nil {
		return nil
	}
	again, _, err := p.differ(ctx, r)
	if err != nil {
		return err
	}
	if again == nil {
		found.Where += " (once; not when it was sent again)"
	} else if found, err = p.shrink(ctx, again); err != nil {
		return err
	}
	found.First = r
	if key := found.Request.about() + found.part(); !p.seen[key] {
		p.seen[key] = true
		p.report.Differences = append(p.report.Differences, *found)
	}
	return nil
}

// differ sends a request to both; nil where the responses are the same.
func (p *pair) differ(ctx context.Context, g Generated) (found *GeneratedDifference, closed bool, err error) {
	r, err := p.mock.record(ctx, g.record())
	if err != nil {
		return nil, false, err
	}
	response, err := p.site.do(ctx, r)
	if err != nil {
		return nil, false, err
	}
	differences := p.site.compare(r, response)
	if len(differences) == 0 {
		return nil, response.Status == 0, nil
	}
	d := differences[0]
	return &GeneratedDifference{Request: g, Where: d.Where, Mock: d.Expected, Site: d.Got}, false, nil
}

// maxShrinks is how many smaller requests are sent for one difference.
const maxShrinks = 300

// shrink looks for the smallest request that still shows a difference in the same place.
func (p *pair) shrink(ctx context.Context, found *GeneratedDifference) (*GeneratedDifference, error) {
	sent := 0
	for smaller := true; smaller; {
		smaller = false
		for candidate := range candidates(found.Request) {
			if p.refuses[candidate.As] {
				p.refused++
			}
			if sent++; sent > maxShrinks || p.refuses[candidate.As] && p.refused > maxRefused {
				return found, nil
			}
			other, _, err := p.differ(ctx, candidate)
			if err != nil {
				return nil, err
			}
			if other != nil && other.part() == found.part() {
				found, smaller = other, true
				break
			}
		}
	}
	return found, nil
}
