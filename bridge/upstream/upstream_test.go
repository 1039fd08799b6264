package upstream

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A response is a result only with the request's own id, and is then given byte for byte.
func FuzzDecodeResponse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}`, `{"id":null,"error":{"code":-32600,"message":"m","data":"Access Denied"}}`,
		`{"id":"7","result":1}`, `{"result":1}`, `[]`, `{"id":7,"result":1,"error":{}}`, `{"id":7,"error":{"code":1.5}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		result, err := decodeResponse(body, "7")
		if err != nil {
			must.Expect(t, result == nil, "both a result and an error for %q", body)
			return
		}
		var response map[string]json.RawMessage
		must.Expect(t, json.Unmarshal(body, &response) == nil && string(response["id"]) == "7" && string(response["result"]) == string(result),
			"%q gave the result %q", body, result)
	})
}

// While the breaker is open one request a second probes the site, and all others fail at once.
func TestTheBreakerProbes(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBreaker(func() time.Time { return now })
	silent := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for range breakAfter {
		err := b.allow()
		must.Assert(t, err == nil, "closed: %v", err)
		b.report(time.Now(), silent, false)
	}
	for range 3 {
		err := b.allow()
		must.Expect(t, fault.Is(err, fault.UpstreamUnavailable) && fault.From(err).RetryAfter == probeEvery, "open: %v", err)
	}
	now = now.Add(probeEvery)
	probe, next := b.allow(), b.allow()
	must.Expect(t, probe == nil && next != nil, "after a while exactly one request probes the site")
	b.report(time.Now(), silent, false)
	must.Expect(t, b.allow() != nil, "a probe that fails lets others through")
	now = now.Add(probeEvery)
	must.Expect(t, b.allow() == nil, "there is no second probe")
	b.report(time.Now(), nil, false)
	for range 3 {
		must.Expect(t, b.allow() == nil && b.closed(), "a probe that succeeds does not let all others through")
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "-1", "3601", "9223372036854775807", "Wed, 21 Oct 2026 07:28:00 GMT", "1.5", "+7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got := (response{header: http.Header{"Retry-After": {header}}}).retryAfter()
		must.Expect(t, got >= 0 && got <= time.Hour, "%q is %s", header, got)
	})
}
