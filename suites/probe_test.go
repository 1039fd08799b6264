package suites_test

import (
	"bufio"
	"net"
	"net/http"
	"testing"

	"bridgecheck/mockdrupal"
	"bridgecheck/reports"
	"bridgecheck/suites"
)

func TestAConnectionThatIsClosedBetweenRequestsIsNoFailure(t *testing.T) {
	drupal := defaultSite(t, mockdrupal.Options{}, nil)
	bridge := referenceAt(t, serveAt(t, drupal), "")
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { at.Close() })
	go relay(at, bridge)
	report, err := suites.Run(t.Context(), suites.Target{URL: "http://" + at.Addr().String()}, suites.Options{
		Drupal: drupal, Only: []string{"invoke/malformed-json", "invoke/unknown-404", "invoke/missing-name"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Verdict != reports.Pass {
			t.Errorf("%s is %s: %s", r.ID, r.Verdict, r.Message)
		}
	}
}

// relay passes requests on to a bridge one by one, and closes a connection after every refusal without a word of it.
func relay(at net.Listener, to string) {
	for {
		conn, err := at.Accept()
		if err != nil {
			return
		}
		go relayOn(conn, to)
	}
}

func relayOn(conn net.Conn, to string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		out, err := http.NewRequest(r.Method, to+r.URL.RequestURI(), r.Body)
		if err != nil {
			return
		}
		out.Header, out.ContentLength = r.Header, r.ContentLength
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			return
		}
		err = resp.Write(conn)
		resp.Body.Close()
		if err != nil || resp.StatusCode >= 400 {
			return
		}
	}
}
