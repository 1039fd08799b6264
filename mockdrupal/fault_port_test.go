package mockdrupal_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// TestFaultsOnThePortAreListedAndEnd: they are faults as all others, by number and all at once.
func TestFaultsOnThePortAreListedAndEnd(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	accepts := func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err == nil {
			conn.Close()
		}
		return err == nil
	}
	for name, end := range map[string]func(int64){
		"by its number": func(id int64) { s.Disarm(id) },
		"with all":      func(int64) { s.DisarmAll() },
		"by its time":   func(int64) { waitUntil(t, accepts, "the port opens") },
	} {
		during := time.Hour
		if name == "by its time" {
			during = 50 * time.Millisecond
		}
		id := must.Get(s.ArmNumbered(mockdrupal.Fault{Kind: fault.Refuse, Delay: during}))(t)
		if list := s.Faults(); during == time.Hour && (len(list) != 1 || list[0].ID != id || accepts()) {
			t.Errorf("%s: armed are %+v, and the port accepts connections: %v", name, list, accepts())
		}
		end(id)
		waitUntil(t, func() bool { return len(s.Faults()) == 0 && accepts() }, "the fault ends "+name)
	}
	_, err := s.Arm(mockdrupal.Fault{Kind: fault.Refuse, Delay: time.Second, Route: route.JSONRPC})
	must.Expect(t, err != nil, "a fault on the port was armed for one route: it would act on all")
}

// A run lets the mock listen twice: for the bridge under test, whose port the faults shut, and for a second process of the bridge.
func TestFaultsOnThePortAreOfTheFirst(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	second := must.Get(s.Listen("127.0.0.1:0"))(t)
	defer second.Close()
	defer must.Get(s.Arm(mockdrupal.Fault{Kind: fault.Refuse, Delay: time.Hour}))(t)()
	for url, refused := range map[string]bool{s.URL: true, second.URL: false} {
		_, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		must.Expect(t, errors.Is(err, syscall.ECONNREFUSED) == refused, "%s: %v", url, err)
	}
}

func TestFaultsSayWhatTheMachineLacks(t *testing.T) {
	bare := must.Get(mockdrupal.New(smallSite(), mockdrupal.Options{}))(t)
	for _, kind := range []string{fault.Refuse, fault.Deaf} {
		if _, err := bare.Arm(mockdrupal.Fault{Kind: kind, Delay: time.Second}); err == nil || !strings.Contains(err.Error(), "Listen") || len(bare.Faults()) > 0 {
			t.Errorf("%s on a handler without a port: %v, armed %v", kind, err, bare.Faults())
		}
	}
}

// A client with an idle connection sees that it ends before its port is shut, by TCP and in memory, and by its next request
// finds no listener; the port that is open again serves it.
func TestClientsSeeTheEndOfTheirConnections(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"by TCP":    (&net.Dialer{}).DialContext,
		"in memory": s.Dial,
	} {
		t.Run(name, func(t *testing.T) {
			var open atomic.Int32
			client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err != nil {
					return nil, err
				}
				open.Add(1)
				return &lateReader{Conn: conn, open: &open}, nil
			}}}
			get := func() error {
				r, err := client.Get(s.URL + "/jsonrpc/methods")
				if err != nil {
					return err
				}
				defer r.Body.Close()
				_, err = io.Copy(io.Discard, r.Body)
				return err
			}
			for range 10 {
				err := get()
				must.Assert(t, err == nil && open.Load() != 0, "%v, with %d connections", err, open.Load())
				disarm := must.Get(s.Arm(mockdrupal.Fault{Kind: fault.Refuse, Delay: time.Minute}))(t)
				n := open.Load()
				must.Assert(t, n == 0, "the client has %d connections to the port that is shut", n)
				err = get()
				must.Assert(t, errors.Is(err, syscall.ECONNREFUSED), "a request to the port that is shut: %v, want %v", err, syscall.ECONNREFUSED)
				disarm()
			}
		})
	}
}

// A site that resets the connection does so in memory, too.
func TestResetsInMemory(t *testing.T) {
	s := start(t, smallSite(), mockdrupal.Options{})
	client := &http.Client{Transport: &http.Transport{DialContext: s.Dial}}
	disarm := must.Get(s.Arm(mockdrupal.Fault{Kind: fault.Reset}))(t)
	if _, err := client.Get(s.URL + "/jsonrpc/methods"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a request that the site resets: %v, want %v", err, syscall.ECONNRESET)
	}
	disarm()
	r, err := client.Get(s.URL + "/jsonrpc/methods")
	must.Assert(t, err == nil, "after it: %v", err)
	r.Body.Close()
}

// lateReader is a connection of a busy client: it sees the end some time after it came.
type lateReader struct {
	net.Conn
	open   *atomic.Int32
	closed atomic.Bool
}

func (c *lateReader) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

func (c *lateReader) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}
