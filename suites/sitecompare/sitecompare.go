// Package sitecompare compares a site with the mock of the same site file by generated requests: valid, invalid and
// malformed ones, as several accounts. Each difference is shrunk to the smallest request that shows one. It draws no
// conclusion on which side is right, and it knows nothing of bridges.
//
// Its invariant: the requests depend on the site file, the number and the seed alone, and both sides receive the same bytes
// in the same order.
package sitecompare

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/transcript"
)

// Options say what to compare and how much.
type Options struct {
	Site        *fixtures.Site           // what both serve
	URL         string                   // the site
	Credentials transcript.CredentialsOf // nil: those of Site
	Requests    int                      // how many to generate
	Seed        uint64
	JSONRPC     int // the line of the site's jsonrpc module; 0: 3
	Max         int // differences to find before it ends; 0: 20
}

// Report is what a comparison found.
type Report struct {
	Seed        uint64       `json:"seed"`
	Requests    int          `json:"requests"` // generated and sent
	Closed      int          `json:"closed"`   // to which both closed the connection without a response
	Left        []string     `json:"left_out"` // methods that are not called, and why
	Differences []Difference `json:"differences"`
	Stopped     bool         `json:"stopped,omitempty"` // there were as many differences as it looks for
}

// Difference is a smallest request to which the responses differ.
type Difference struct {
	Request Request `json:"request"`
	Where   string  `json:"where"` // status, header NAME, title or body
	Mock    string  `json:"mock"`
	Site    string  `json:"site"`
	First   Request `json:"generated"` // the request that was generated
}

// Agrees reports whether there is no difference.
func (r *Report) Agrees() bool { return len(r.Differences) == 0 }

// Write prints the report for people.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	for _, left := range r.Left {
		fmt.Fprintf(&b, "not called: %s\n", left)
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "DIFFERS %s\n  %s\n  mock: %s\n  site: %s\n", d.Request, d.Where, d.Mock, d.Site)
	}
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

// Run compares. It fails when the site cannot be reached.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Requests < 1 {
		return nil, fmt.Errorf("%d requests compare nothing; give 1 or more", o.Requests)
	}
	d, err := mockdrupal.New(o.Site, mockdrupal.Options{JSONRPC: o.JSONRPC})
	if err != nil {
		return nil, err
	}
	mock, err := d.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer mock.Close()
	if o.Credentials == nil {
		o.Credentials = transcript.SiteCredentials(o.Site)
	}
	if o.Max == 0 {
		o.Max = maxDifferences
	}
	sides := [2]side{}
	for i, address := range []string{mock.URL, o.URL} {
		if sides[i], err = newSide(address, o.Credentials); err != nil {
			return nil, err
		}
	}
	g := newGenerator(o.Site, newDice(o.Seed))
	c := &comparison{sides: sides, compared: comparedHeaders(o.Site), refuses: refusedAccounts(o.Site), report: &Report{Seed: o.Seed, Left: g.left, Differences: []Difference{}}, seen: map[string]bool{}}
	if err := c.recognise(ctx, g.callers); err != nil {
		return nil, err
	}
	for c.report.Requests < o.Requests {
		if err := c.try(ctx, g.request()); err != nil {
			return nil, err
		}
		if c.report.Stopped = len(c.report.Differences) >= o.Max; c.report.Stopped {
			break
		}
	}
	return c.report, nil
}

type comparison struct {
	sides    [2]side
	compared []string
	refuses  map[string]bool // accounts
	refused  int             // requests of these accounts that were sent to shrink others
	report   *Report
	seen     map[string]bool // what the smallest requests that were found are about, and where
}

// recognise refuses a site that shows no account its methods though the mock does: then every request would differ.
func (c *comparison) recognise(ctx context.Context, accounts []string) error {
	var refusal error
	for _, name := range accounts {
		found, _, err := c.differ(ctx, Request{As: name, Verb: http.MethodGet, Path: methodsPath})
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
func (c *comparison) try(ctx context.Context, r Request) error {
	c.report.Requests++
	found, closed, err := c.differ(ctx, r)
	if err != nil {
		return err
	}
	if closed {
		c.report.Closed++
	}
	if found == nil {
		return nil
	}
	again, _, err := c.differ(ctx, r)
	if err != nil {
		return err
	}
	if again == nil {
		found.Where += " (once; not when it was sent again)"
	} else if found, err = c.shrink(ctx, r, again); err != nil {
		return err
	}
	found.First = r
	if key := found.Request.about() + found.Where; !c.seen[key] {
		c.seen[key] = true
		c.report.Differences = append(c.report.Differences, *found)
	}
	return nil
}

// differ sends a request to both sides; nil where the responses are the same.
func (c *comparison) differ(ctx context.Context, r Request) (found *Difference, closed bool, err error) {
	var got [2]received
	for i, s := range c.sides {
		if got[i], err = s.send(ctx, r); err != nil {
			return nil, false, err
		}
	}
	where, mock, site := compare(got[0], got[1], c.compared)
	if where == "" {
		return nil, got[0].status == 0, nil
	}
	return &Difference{Request: r, Where: where, Mock: mock, Site: site}, false, nil
}

// maxShrinks is how many smaller requests are sent for one difference.
const maxShrinks = 300

// shrink looks for the smallest request that still shows a difference in the same place.
func (c *comparison) shrink(ctx context.Context, r Request, found *Difference) (*Difference, error) {
	sent := 0
	for smaller := true; smaller; {
		smaller = false
		for candidate := range candidates(found.Request) {
			if c.refuses[candidate.As] {
				c.refused++
			}
			if sent++; sent > maxShrinks || c.refuses[candidate.As] && c.refused > maxRefused {
				return found, nil
			}
			other, _, err := c.differ(ctx, candidate)
			if err != nil {
				return nil, err
			}
			if other != nil && other.Where == found.Where {
				found, smaller = other, true
				break
			}
		}
	}
	return found, nil
}

// UnreachableError means that a side accepts no connection.
type UnreachableError struct {
	URL    string
	Reason error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the site %s cannot be reached: %s", e.URL, e.Reason)
}
func (e *UnreachableError) Unwrap() error { return e.Reason }
