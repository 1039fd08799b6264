//go:build unix

// Package replicas runs three replicas of the reference bridge with real parts: processes, redis-server, and connections
// that are cut. The site is the mock, in this process, so that its journal says what ran.
package replicas

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/redistest"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

const (
	replicas = 3
	ttl      = time.Second // of lists
)

// The users have different tools: admin alone has soak.restricted.
var users = []string{"agent", "agent2", "admin"}

// stand is a site, a store, three replicas that share it, and a balancer before them.
type stand struct {
	t        testing.TB
	drupal   *mockdrupal.Drupal
	site     string // its address
	store    *redistest.Server
	replicas []*replica
	balancer *balancer
	front    *httptest.Server // of the balancer
}

// newStand starts them, the replicas with flags beside.
func newStand(t testing.TB, flags ...string) *stand {
	t.Helper()
	must.Need(t, !testing.Short(), "SKIPPED: -short: no replicas are tested")
	site := must.Get(fixtures.Builtin("default"))(t)
	site = site.Clone()
	site.Methods = []fixtures.Method{method(echo), method("soak.restricted"), method(extra)}
	site.Methods[1].Access = []string{"administer site configuration"}
	s := &stand{t: t, store: redistest.Start(t)}
	s.drupal = must.Get(mockdrupal.New(site, mockdrupal.Options{JournalLimit: 200_000}))(t)
	behind := must.Serve(t, s.drupal)
	s.site = behind.URL
	s.balancer = newBalancer()
	for range replicas {
		r := &replica{stand: s, env: share, link: newLink(t, strings.TrimPrefix(s.store.Address, "redis://"))}
		t.Cleanup(r.kill)
		s.replicas = append(s.replicas, r)
		r.start(append(flags, "--shared", "redis://"+r.link.address())...)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for i, r := range s.replicas {
				t.Logf("the log of replica %d:\n%s", i+1, &r.log)
			}
		}
	})
	s.balance(s.replicas...)
	s.front = must.Serve(t, s.balancer)
	for _, r := range s.replicas {
		r.await("the store is reached", func() bool { return strings.Contains(r.log.String(), "the shared store is reached") })
	}
	return s
}

// The methods that calls use, and that comes and goes.
const (
	echo  = "soak.echo"
	extra = "soak.extra"
)

// method gives its arguments back.
func method(id string) fixtures.Method {
	return fixtures.Method{
		ID: id, Usage: "Gives its token back", MCP: &fixtures.Tool{},
		Params:    []fixtures.Param{{Name: "token", Schema: fixtures.Raw(`{"type":"string"}`), Required: true}},
		Behaviour: fixtures.Behaviour{Kind: fixtures.Echo},
	}
}

// change takes the method extra from the site, or gives it back.
func (s *stand) change() {
	s.t.Helper()
	err := s.drupal.Update(func(site *fixtures.Site) error {
		if i := slices.IndexFunc(site.Methods, func(m fixtures.Method) bool { return m.ID == extra }); i >= 0 {
			site.Methods = slices.Delete(slices.Clone(site.Methods), i, i+1)
		} else {
			site.Methods = append(slices.Clone(site.Methods), method(extra))
		}
		return nil
	})
	must.Do(s.t, err)
}

// balance lets the balancer send to these replicas.
func (s *stand) balance(to ...*replica) { s.balancer.to.Store(&to) }

// replica is a process of the bridge, and those that took its place after it was killed.
type replica struct {
	stand *stand
	link  *link // to the store
	flags []string
	env   string
	log   program.Output // of its processes
	now   atomic.Pointer[process]
}

// process is one process of a replica.
type process struct {
	cmd    *exec.Cmd
	url    string
	killed atomic.Bool // set before it is
}

// keys are the same for all replicas.
const keys = "BRIDGE_SESSION_KEYS=the replicas of this test encrypt with it"

// share gives a replica its part of the processors, as docs/scale-out.md recommends to those who run several on a machine.
var share = fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/replicas))

// counted has the store count each call.
var counted = []string{"--rate-limit", "1000000", "--rate-burst", "1000000"}

func (r *replica) start(flags ...string) {
	r.flags = flags
	r.restart()
}

// restart starts a process in the place of the one that was killed. It returns when the bridge serves.
func (r *replica) restart() {
	t := r.stand.t
	t.Helper()
	ttls := []string{"--discovery-ttl", ttl.String(), "--permission-ttl", ttl.String()}
	p := &process{cmd: exec.Command(program.Build(t), slices.Concat([]string{"bridge", "--drupal", r.stand.site, "--listen", "127.0.0.1:0"}, ttls, r.flags)...)}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), keys, r.env}
	p.cmd.Stderr = &r.log
	p.url = program.Listening(t, p.cmd)
	r.now.Store(p)
}

// kill ends the process at once, with all that it does.
func (r *replica) kill() {
	if p := r.now.Load(); p != nil && !p.killed.Swap(true) {
		p.cmd.Process.Kill() //nolint:errcheck // it has ended
		p.cmd.Wait()         //nolint:errcheck // it was killed
	}
}

func (r *replica) signal(s syscall.Signal) {
	err := r.now.Load().cmd.Process.Signal(s)
	must.Expect(r.stand.t, err == nil, "a replica has ended by itself: %v\n%s", err, &r.log)
}

func (r *replica) await(what string, is func() bool) {
	r.stand.t.Helper()
	for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		must.Assert(r.stand.t, time.Since(began) <= 15*time.Second, "not within 15 s: %s\n%s", what, &r.log)
	}
}

// client has as many connections as it needs, and repeats nothing.
func client(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

// request is a request of a user.
func request(ctx context.Context, user, method, url, body string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(fmt.Sprintf("a request of the test: %v", err))
	}
	r.SetBasicAuth(user, user+"-pass")
	r.Header.Set("Content-Type", "application/json")
	return r
}
