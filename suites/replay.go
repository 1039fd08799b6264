package suites

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// Replayed is a request of a report that was sent again.
type Replayed struct {
	Clause   string
	Line     string           // the curl line that was obeyed
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
		return nil, usage("the report has no result for %q; the nearest is %s", clause, suggest.Nearest(clause, ids))
	}
	result := report.Results[i]
	if result.Curl == "" {
		return nil, usage("%s is %s: there is no failing request to send again", clause, result.Verdict)
	}
	secrets := &redact.Redactor{}
	request, err := harness.ParseCurl(result.Curl, func(name string) string {
		secrets.Add(getenv(name))
		return getenv(name)
	})
	if err != nil {
		return nil, usage("%s: %v", clause, err)
	}
	r := &Replayed{Clause: clause, Line: result.Curl}
	if r.Old, err = blamed(result, request); err != nil {
		return nil, err
	}
	r.New = send(ctx, request, secrets, timeout)
	r.Same = sameAnswer(r.Old, r.New)
	return r, nil
}

// blamed finds the exchange of the curl line in the evidence.
func blamed(result reports.Result, request harness.Curl) (reports.Exchange, error) {
	for _, e := range slices.Backward(result.Evidence) {
		if e.Request.Method == request.Method && e.Request.URL == request.URL && strings.HasPrefix(request.Body, e.Request.Body) {
			return e, nil
		}
	}
	return reports.Exchange{}, usage("%s: the report does not hold the answer to the request of its curl line", result.ID)
}

// send sends the request. Why no answer came stands in the exchange.
func send(ctx context.Context, c harness.Curl, secrets *redact.Redactor, timeout time.Duration) reports.Exchange {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, harness.ErrTimeout)
	defer cancel()
	e := reports.Exchange{At: time.Now().UTC(), Request: reports.Message{Method: c.Method, URL: c.URL}}
	var body io.Reader
	if c.Body != "" {
		body = strings.NewReader(c.Body)
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, c.URL, body)
	if err != nil {
		e.Error = secrets.Text(err.Error())
		return e
	}
	req.Header = c.Header.Clone()
	if target, err := url.Parse(c.Target); c.Target != "" && err == nil {
		req.URL.Opaque = "//" + target.Host + target.EscapedPath()
	}
	if name, password, ok := strings.Cut(c.User, ":"); ok {
		req.SetBasicAuth(name, password)
		secrets.Add(harness.Basic(name, password))
	}
	transport := newTransport(nil, nil)
	defer transport.CloseIdleConnections()
	began := time.Now()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		e.Error = secrets.Text(harness.NoResponse(ctx, err).Error())
		return e
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, harness.MaxResponse))
	if err != nil {
		e.Error = secrets.Text(harness.NoResponse(ctx, err).Error())
	}
	t := &harness.T{Environment: &harness.Environment{Redact: secrets}}
	e.Response = &reports.Message{Status: resp.StatusCode, Header: t.Shown(resp.Header), DurationMS: harness.Milliseconds(time.Since(began))}
	t.Body(e.Response, answer, harness.KeptBody)
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
