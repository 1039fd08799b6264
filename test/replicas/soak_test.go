//go:build unix

package replicas

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// The shape of a round.
const (
	callers   = 12
	methodRun = 25 * time.Millisecond // how long the site's method takes, so that calls are under way when a replica dies
	lasts     = time.Second           // a disturbance
	slack     = time.Second           // after the TTL, for a busy machine
)

// disturbance is what happens during a round, beside a change of the site. It lasts for lasts.
type disturbance struct {
	name  string
	begin func(*stand, *replica)
	end   func(*stand, *replica)
	kills bool
	cuts  bool // the replica that was chosen from the store
}

var disturbances = []disturbance{
	{name: "none", begin: func(*stand, *replica) {}, end: func(*stand, *replica) {}},
	{name: "a replica killed", kills: true,
		begin: func(_ *stand, r *replica) { r.kill() },
		end:   func(_ *stand, r *replica) { r.restart() }},
	{name: "a replica paused",
		begin: func(_ *stand, r *replica) { r.signal(syscall.SIGSTOP) },
		end:   func(_ *stand, r *replica) { r.signal(syscall.SIGCONT) }},
	{name: "the store killed", cuts: true,
		begin: func(s *stand, _ *replica) { s.store.Kill() },
		end:   func(s *stand, _ *replica) { s.store.Restart() }},
	{name: "the store paused", cuts: true,
		begin: func(s *stand, _ *replica) { s.store.Pause() },
		end:   func(s *stand, _ *replica) { s.store.Resume() }},
	{name: "a replica cut from the store", cuts: true,
		begin: func(_ *stand, r *replica) { r.link.sever() },
		end:   func(_ *stand, r *replica) { r.link.heal() }},
	{name: "all cut from the store", cuts: true,
		begin: func(s *stand, _ *replica) { each(s.replicas, func(r *replica) { r.link.sever() }) },
		end:   func(s *stand, _ *replica) { each(s.replicas, func(r *replica) { r.link.heal() }) }},
}

func each(all []*replica, do func(*replica)) {
	for _, r := range all {
		do(r)
	}
}

// soak is what rounds found. A call has one outcome:
//   - served: the response is its own.
//   - killed: there was no response, and the test had killed the replica that had the request. Whether it ran is counted, and
//     that it ran once at most is checked.
//   - refused, or without a response for another reason: lost where the site ran it, unserved where not. Both must be 0.
type soak struct {
	calls, served, killed, killedRan, lists                  int
	duplicates, crossTalk, lost, unserved, wrongLists, stale int

	first string // fault that was found
}

func (s *soak) add(o soak) {
	for _, c := range []struct{ to, from *int }{
		{&s.calls, &o.calls}, {&s.served, &o.served}, {&s.killed, &o.killed}, {&s.killedRan, &o.killedRan}, {&s.lists, &o.lists},
		{&s.duplicates, &o.duplicates}, {&s.crossTalk, &o.crossTalk}, {&s.lost, &o.lost}, {&s.unserved, &o.unserved}, {&s.wrongLists, &o.wrongLists}, {&s.stale, &o.stale},
	} {
		*c.to += *c.from
	}
	s.first = cmp.Or(s.first, o.first)
}

func (s *soak) faults() int {
	return s.duplicates + s.crossTalk + s.lost + s.unserved + s.wrongLists + s.stale
}

func (s *soak) found(count *int, format string, args ...any) {
	*count++
	s.first = cmp.Or(s.first, fmt.Sprintf(format, args...))
}

func (s soak) String() string {
	return fmt.Sprintf("%6d calls, %6d served, %3d lost with a killed replica (%d of them ran, once), %5d lists: %d duplicate executions, %d cross-talk, %d lost responses, %d unserved, %d wrong lists, %d lists older than the TTL",
		s.calls, s.served, s.killed, s.killedRan, s.lists, s.duplicates, s.crossTalk, s.lost, s.unserved, s.wrongLists, s.stale)
}

// TestSoak makes calls and lists through three replicas while each disturbance happens in turn, once or for REPLICAS_TIME.
func TestSoak(t *testing.T) {
	var until time.Time
	if text := os.Getenv("REPLICAS_TIME"); text != "" {
		lasts, err := time.ParseDuration(text)
		must.Assert(t, err == nil, "REPLICAS_TIME is %q; it must be a time such as 10m", text)
		until = time.Now().Add(lasts)
	}
	s := newStand(t, counted...)
	s.slowDown()
	all, found := soak{}, make([]soak, len(disturbances))
	for first := true; first || time.Now().Before(until); first = false {
		for i, d := range disturbances {
			one := s.round(d)
			all.add(one)
			found[i].add(one)
		}
	}
	for i, d := range disturbances {
		t.Logf("%-28s %s", d.name, found[i])
		must.Expect(t, found[i].served != 0 && found[i].lists != 0, "%s: nothing was served", d.name)
	}
	t.Logf("%-28s %s", "all", all)
	must.Expect(t, all.faults() <= 0, "the soak found faults; the first: %s", all.first)
	must.Expect(t, all.killed != 0, "no call was under way when a replica was killed: nothing shows that it runs once")
}

// TestTheSoakFindsFaults soaks balancers that do what the soak has to find.
func TestTheSoakFindsFaults(t *testing.T) {
	s := newStand(t, counted...)
	s.slowDown()
	var previous atomic.Pointer[[]byte]
	rare := func(do spoilation) *spoilation {
		var n atomic.Int64
		every := spoilation(func(b []byte) []byte {
			if n.Add(1)%50 == 0 {
				return do(b)
			}
			return b
		})
		return &every
	}
	for _, c := range []struct {
		name    string
		during  int // disturbance
		repeats bool
		spoil   *spoilation
		count   func(soak) int
	}{
		{name: "repeats a call whose replica died", during: 1, repeats: true, count: func(s soak) int { return s.duplicates }},
		{name: "mixes up responses", spoil: rare(func(b []byte) []byte {
			if old := previous.Swap(&b); old != nil {
				return *old
			}
			return b
		}), count: func(s soak) int { return s.crossTalk }},
		{name: "drops responses", spoil: rare(func([]byte) []byte { return nil }), count: func(s soak) int { return s.lost }},
	} {
		s.balancer.repeats = c.repeats
		s.balancer.spoil.Store(c.spoil)
		var found soak
		for range 5 { // a replica may be killed while no call of it has run
			if found = s.round(disturbances[c.during]); c.count(found) > 0 {
				break
			}
		}
		must.Expect(t, c.count(found) != 0, "a balancer that %s: the soak found %s", c.name, found)
	}
}

// slowDown makes the site's method take a while.
func (s *stand) slowDown() {
	_, err := s.drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Method: echo, Delay: methodRun, Run: true})
	must.Assert(s.t, err == nil, "%v", err)
}

// outcome is what became of a call.
type outcome int

const (
	served outcome = iota
	killed
	failed
)

// round is calls and lists from before a disturbance and a change of the site until the change must show everywhere. Then it
// compares what callers received with what the site ran.
func (s *stand) round(d disturbance) soak {
	t := s.t
	t.Helper()
	chosen := s.replicas[rand.IntN(len(s.replicas))]
	undone := chosen.undone()
	s.drupal.Journal().Clear()
	r := &round{stand: s, from: s.drupal.Journal().Last(), outcomes: map[string]outcome{}, client: client(30 * time.Second)}
	defer r.client.CloseIdleConnections()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { r.caller(ctx, users[i%len(users)]) })
	}
	time.Sleep(200 * time.Millisecond)
	d.begin(s, chosen)
	s.change()
	r.changed.Store(time.Now().UnixNano())
	changed := time.Now()
	time.Sleep(lasts)
	d.end(s, chosen)
	time.Sleep(time.Until(changed.Add(ttl + slack)))
	for _, replica := range s.replicas {
		for _, user := range users {
			r.list(user, replica.now.Load().url)
		}
	}
	stop()
	wg.Wait()
	if d.cuts {
		must.Expect(t, chosen.undone() != undone, "%s: the store did all that the replica asked for, so nothing was disturbed", d.name)
		each(s.replicas, func(r *replica) {
			r.await("the store is reached again", func() bool { return r.metric(`bridge_shared_up`) == 1 })
		})
	}
	r.reconcile(d)
	return r.soak
}

// undone is how many commands the store has not done for a replica: the log has one line a minute of it.
func (r *replica) undone() float64 {
	return r.metric(`bridge_shared_total\{outcome="(?:down|error)",[^}]*\}`)
}

// metric adds up the metrics of a replica whose names match.
func (r *replica) metric(pattern string) (sum float64) {
	r.stand.t.Helper()
	res, err := http.Get(r.now.Load().url + "/metrics")
	must.Do(r.stand.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must.Do(r.stand.t, err)
	for _, found := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllSubmatch(body, -1) {
		value, err := strconv.ParseFloat(string(found[1]), 64)
		must.Do(r.stand.t, err)
		sum += value
	}
	return sum
}

// round is a round under way.
type round struct {
	*stand
	client  *http.Client
	from    int64        // the last entry of the site's journal before it
	changed atomic.Int64 // when the site changed, Unix nanoseconds

	mu       sync.Mutex
	outcomes map[string]outcome
	soak
}

var sequence atomic.Int64

// caller calls until it is stopped, every other call in an MCP session that whichever replica opens.
func (r *round) caller(ctx context.Context, user string) {
	session := ""
	for n := 0; ctx.Err() == nil; n++ {
		token := fmt.Sprintf("token-%s-%d.", user, sequence.Add(1))
		arguments := `"arguments":{"token":"` + token + `"}}`
		switch {
		case n%10 == 9:
			r.list(user, r.front.URL)
		case n%2 == 0:
			r.call(user, token, request(context.Background(), user, "POST", r.front.URL+"/mcp/tools/invoke", `{"name":"`+echo+`",`+arguments))
		case session == "":
			session = r.open(user)
		default:
			req := request(context.Background(), user, "POST", r.front.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+echo+`",`+arguments+`}`)
			req.Header.Set("Mcp-Session-Id", session)
			req.Header.Set("Mcp-Protocol-Version", revision)
			r.call(user, token, req)
		}
	}
}

const revision = "2025-11-25"

// open opens a session; "" where the replica was killed.
func (r *round) open(user string) string {
	res, body, err := r.do(request(context.Background(), user, "POST", r.front.URL+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}`))
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && res.Header.Get(broken) == byKill {
		return ""
	}
	if err != nil || res.Header.Get("Mcp-Session-Id") == "" {
		r.found(&r.unserved, "no session opens: %s", describe(res, body, err))
		return ""
	}
	return res.Header.Get("Mcp-Session-Id")
}

var tokens = regexp.MustCompile(`token-[a-z0-9]+-[0-9]+\.`)

// call makes a call and notes what became of it.
func (r *round) call(user, token string, req *http.Request) {
	res, body, err := r.do(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	seen := tokens.FindAllString(body, -1)
	switch {
	case slices.ContainsFunc(seen, func(other string) bool { return other != token }):
		r.found(&r.crossTalk, "%s gets %s", token, body)
	case err == nil && res.StatusCode == 200 && len(seen) > 0:
		r.outcomes[token] = served
		r.served++
		return
	case err == nil && res.Header.Get(broken) == byKill:
		r.outcomes[token] = killed
		r.killed++
		return
	}
	r.outcomes[token] = failed
	r.first = cmp.Or(r.first, fmt.Sprintf("%s: %s", token, describe(res, body, err)))
}

// list compares a user's list with what it may be: as before the change of the site or as after it, and when the TTL is over
// only that.
func (r *round) list(user, url string) {
	changed := r.changed.Load()
	limit := time.Unix(0, changed).Add(ttl + slack)
	due := changed != 0 && time.Now().After(limit)
	res, body, err := r.do(request(context.Background(), user, "GET", url+"/mcp/tools/list", ""))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists++
	if err == nil && res.Header.Get(broken) == byKill {
		return
	}
	var list struct{ Tools []struct{ Name string } }
	if err != nil || res.StatusCode != 200 || json.Unmarshal([]byte(body), &list) != nil {
		r.found(&r.unserved, "%s's list: %s", user, describe(res, body, err))
		return
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	with, without := []string{echo, extra}, []string{echo}
	if user == "admin" {
		with, without = append(with, "soak.restricted"), append(without, "soak.restricted")
	}
	now := without
	for _, m := range r.drupal.Site().Methods {
		if m.ID == extra {
			now = with
		}
	}
	switch {
	case !slices.Equal(names, with) && !slices.Equal(names, without):
		r.found(&r.wrongLists, "%s's list: %v", user, names)
	case due && !slices.Equal(names, now):
		r.found(&r.stale, "%s's list %v after the change: %v", user, time.Since(time.Unix(0, changed)), names)
	}
}

func (r *round) do(req *http.Request) (*http.Response, string, error) {
	res, err := r.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

func describe(res *http.Response, body string, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s %s", res.StatusCode, res.Header.Get(broken), body)
}

// reconcile compares what callers received with what the site ran.
func (r *round) reconcile(d disturbance) {
	lost := r.drupal.Journal().Lost(r.from)
	must.Assert(r.t, lost <= 0, "the journal has lost %d entries", lost)
	runs := map[string]int{}
	for _, e := range r.drupal.Journal().Entries(r.from) {
		for _, c := range e.Calls {
			token := tokens.FindString(string(c.Params))
			if !c.Ran || token == "" {
				continue
			}
			runs[token]++
			if !strings.HasPrefix(token, "token-"+e.User+"-") {
				r.found(&r.crossTalk, "%s ran as %s", token, e.User)
			}
		}
	}
	for token, became := range r.outcomes {
		ran := runs[token]
		if ran > 1 {
			r.found(&r.duplicates, "%s ran %d times", token, ran)
		}
		switch {
		case became == served && ran == 0:
			r.found(&r.crossTalk, "%s was served and did not run", token)
		case became == failed && ran > 0:
			r.found(&r.lost, "%s ran, and its response was lost", token)
		case became == failed:
			r.found(&r.unserved, "%s was not served", token)
		case became == killed && ran > 0:
			r.killedRan++
		}
	}
	must.Expect(r.t, r.killed <= 0 || d.kills,
		"%s: %d calls are counted as lost with a killed replica, and none was killed", d.name, r.killed)
}
