package suites

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// Replayed is a request of a report that was sent again.
type Replayed struct {
	Clause   string
	Line     string           // the curl line that was sent
	Old, New reports.Exchange // without secrets
	Same     bool             // whether the new answer has the old one's status and body
}

// Replay sends the request that a clause's result blames again, with the credentials in the environment variables that
// its curl line names, and waits at most so long for the answer. It is one request, and judges nothing. The error says
// what is missing.
func Replay(ctx context.Context, report *reports.Report, clause string, getenv func(string) string, timeout time.Duration) (*Replayed, error) {
	i := slices.IndexFunc(report.Results, func(r reports.Result) bool { return r.ID == clause })
	if i < 0 {
		ids := make([]string, len(report.Results))
		for i, r := range report.Results {
			ids[i] = r.ID
		}
		return nil, usage("the report has no result for %q; the nearest is %s", clause, contract.Nearest(clause, ids))
	}
	result := report.Results[i]
	old, ok := result.Blamed()
	if !ok {
		return nil, usage("%s is %s: there is no failing request to send again", clause, result.Verdict)
	}
	if slices.ContainsFunc([]string{old.Request.URL, old.Request.Body}, func(s string) bool { return strings.Contains(s, redact.Mark) }) {
		return nil, usage("%s: the request held a secret that the report does not: it cannot be sent again", clause)
	}
	secrets := &redact.Redactor{}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	request, err := old.NewRequest(ctx, func(name string) string {
		secrets.Add(getenv(name))
		return getenv(name)
	})
	if err != nil {
		return nil, usage("%s: %v", clause, err)
	}
	if name, password, ok := request.BasicAuth(); ok {
		secrets.Add(basic(name, password))
	}
	r := &Replayed{Clause: clause, Line: old.Curl(), Old: old, New: send(request, secrets)}
	r.Same = sameAnswer(r.Old, r.New)
	return r, nil
}

// send sends the request. Why no answer came stands in the exchange.
func send(req *http.Request, secrets *redact.Redactor) reports.Exchange {
	ctx := req.Context()
	e := reports.Exchange{At: time.Now().UTC(), Request: reports.Message{Method: req.Method, URL: req.URL.String()}}
	transport := newTransport(Options{})
	defer transport.CloseIdleConnections()
	began := time.Now()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		e.Error = secrets.Text(NoAnswer(ctx, err).Error())
		return e
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		e.Error = secrets.Text(NoAnswer(ctx, err).Error())
	}
	b := &Bridge{redact: secrets}
	e.Response = &reports.Message{Status: resp.StatusCode, Header: b.shown(resp.Header), DurationMS: ms(time.Since(began))}
	b.body(e.Response, answer, keptBody)
	return e
}

// sameAnswer compares status and body, JSON by value; of a body that was cut what is left counts.
func sameAnswer(before, after reports.Exchange) bool {
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
