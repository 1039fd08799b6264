package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// ReplayOptions say what Replay sends, and where.
type ReplayOptions struct {
	Report   *reports.Report
	Clause   string
	Accounts []check.Identity    // whose variables it reads, beside those of the contract's accounts
	To       string              // base URL of the bridge; "": the report's target, which alone is then sent to
	Getenv   func(string) string // the environment: of it only the variables of identities are read
	Timeout  time.Duration       // of the request
}

// Replayed is a request of a report that was sent again. Anybody may have written its texts: escape them for a terminal.
type Replayed struct {
	Clause   string
	Line     string           // the curl line of the request
	Old, New reports.Exchange // without secrets
	Same     bool             // whether the new response has the status and the body of the old one
}

// replayable are the identities whose variables a replay expands, for example AGENT_PASSWORD. A report that another
// wrote must not read the rest of the environment.
var replayable = []check.Identity{check.Agent, check.Agent2, check.Discoverer, check.Outsider, check.NoRPC, check.Blocked, check.Service, check.Admin}

// Replay sends the request that the result of a clause blames again, once, and gives no verdict. It reads no variables but
// those of identities, and sends to no host that neither the report's target nor To names. The error, a *UsageError, says
// what is missing or wrong.
func Replay(ctx context.Context, o ReplayOptions) (*Replayed, error) {
	old, err := failingRequest(o)
	if err != nil {
		return nil, err
	}
	again := old
	if again.Request.URL, err = destination(o, old.Request.URL); err != nil {
		return nil, err
	}
	secrets := &redact.Redactor{}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, client.ErrTimeout)
	defer cancel()
	request, err := again.NewRequest(ctx, func(name string) string {
		secrets.Add(o.Getenv(name))
		return o.Getenv(name)
	})
	if err != nil {
		return nil, usage("%s: %v", o.Clause, err)
	}
	if name, password, ok := request.BasicAuth(); ok {
		secrets.Add(client.Basic(name, password))
	}
	r := &Replayed{Clause: o.Clause, Line: again.Curl(), Old: old, New: send(request, secrets)}
	r.Same = sameResponse(r.Old, r.New)
	return r, nil
}

// failingRequest finds the request that the result of a clause blames, and refuses one that cannot be sent again.
func failingRequest(o ReplayOptions) (reports.Exchange, error) {
	none := reports.Exchange{}
	report, clause, accounts := o.Report, o.Clause, slices.Concat(replayable, o.Accounts)
	known, err := contract.Load()
	if err != nil {
		return none, err
	}
	result, ok := report.Result(clause)
	if !ok {
		ids := make([]string, len(report.Results))
		for i, r := range report.Results {
			ids[i] = r.ID
		}
		return none, usage("the report has no result for %q; %s", clause, suggest.Or(clause, ids, "report.html lists those that it has"))
	}
	if _, ok := known.Clause(clause); !ok {
		return none, usage("%q is no clause of the contract: the report is of another version, or was changed", clause)
	}
	old, ok := result.Blamed()
	switch {
	case !ok:
		return none, usage("%s is %s: there is no failing request to send again", clause, result.Verdict)
	case strings.Contains(old.Request.URL+"\n"+old.Request.Body, redact.Mark), bytes.Contains(old.Request.Whole, []byte(redact.Mark)):
		return none, usage("%s: the request held a secret that the report does not: it cannot be sent again", clause)
	case len(old.Credentials) > 0 && !slices.Contains(accounts, check.Identity(old.Identity)):
		return none, usage("%s: the request needs the credentials of %q, and replay has only those of %s", clause, old.Identity, joined(accounts))
	}
	return old, nil
}

func joined(identities []check.Identity) string {
	names := make([]string, len(identities))
	for i, who := range identities {
		names[i] = who.String()
	}
	return strings.Join(names, ", ")
}

// destination is where the request goes: the URL of the report, which must be below the target's, or the same below To.
func destination(o ReplayOptions, written string) (string, error) {
	target, err := BaseURL(o.Report.Target.URL)
	if err != nil {
		return "", usage("the target of the report: %v", err)
	}
	from, err := url.Parse(written)
	if err != nil || from.Host == "" {
		return "", usage("the report has no address of the failing request")
	}
	same := from.Scheme == target.Scheme && from.Host == target.Host && from.User == nil
	if o.To == "" {
		if !same {
			return "", usage("the request goes to %s and the target of the report is %s: name the bridge to send it to by --to", from.Host, target.Host)
		}
		return written, nil
	}
	to, err := BaseURL(o.To)
	if err != nil {
		return "", usage("--to: %v", err)
	}
	if to.User != nil {
		return "", usage("--to takes an address without credentials: they come from the variables of the identity")
	}
	path := from.EscapedPath()
	if same {
		path = strings.TrimPrefix(path, target.EscapedPath())
	}
	rest := &url.URL{RawQuery: from.RawQuery, ForceQuery: from.ForceQuery}
	return to.String() + path + rest.String(), nil
}

// send sends the request. Why no response came stands in the exchange.
func send(req *http.Request, secrets *redact.Redactor) reports.Exchange {
	ctx := req.Context()
	e := reports.Exchange{At: time.Now().UTC(), Request: reports.Message{Method: req.Method, URL: req.URL.String()}}
	transport := newTransport(nil, nil, nil)
	defer transport.CloseIdleConnections()
	began := time.Now()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		e.Error = secrets.Text(client.NoResponse(ctx, err).Error())
		return e
	}
	defer resp.Body.Close()
	response, err := io.ReadAll(io.LimitReader(resp.Body, client.MaxResponse))
	if err != nil {
		e.Error = secrets.Text(client.NoResponse(ctx, err).Error())
	}
	t := &check.T{Environment: &check.Environment{Config: check.Config{Redact: secrets}}}
	e.Response = &reports.Message{Status: resp.StatusCode, Header: t.Shown(resp.Header), DurationMS: check.Milliseconds(time.Since(began))}
	t.Body(e.Response, response, check.KeptBody)
	return e
}

// sameResponse compares status and body, JSON by value; of a truncated body, the part that was kept.
func sameResponse(before, after reports.Exchange) bool {
	if before.Response == nil || after.Response == nil {
		return before.Response == nil && after.Response == nil
	}
	one, two := before.Response, after.Response
	if one.Status != two.Status || one.Encoding != two.Encoding {
		return false
	}
	if one.Truncated > 0 || two.Truncated > 0 {
		n := min(len(one.Body), len(two.Body))
		return one.Body[:n] == two.Body[:n]
	}
	x, xerr := exact.Parse([]byte(one.Body))
	y, yerr := exact.Parse([]byte(two.Body))
	if err := errors.Join(xerr, yerr); err != nil {
		return one.Body == two.Body
	}
	return exact.Equal(x, y)
}
