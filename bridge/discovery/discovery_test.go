package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/recent"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// listed is a source that lists what a function says.
type listed func(who caller.Caller) (string, error)

func (l listed) Fetch(ctx context.Context, who caller.Caller, _ string) (Response, error) {
	doc, err := l(who)
	if err != nil {
		return Response{}, err
	}
	return response(ctx, doc)
}

// response is what is held of a document.
func response(ctx context.Context, doc string) (a Response, err error) {
	err = a.add(ctx, strings.NewReader(doc), "data")
	return a, err
}

func (listed) Read(a Response) (Description, error) { return JSONRPC{}.Read(a) }

func callerNamed(name string) caller.Caller { return caller.Caller{Identity: caller.Identity{name[0]}} }

func engine(t *testing.T, source Source, now func() time.Time) *Engine {
	e := must.Get(New(Options{
		Source: source, Rules: Rules{PageSize: 50}, TTL: time.Minute, Permission: time.Minute, Refused: time.Second, MaxStale: time.Hour,
		StaleAfter: time.Second, MaxCallers: 100_000, Now: now, Logger: slog.New(slog.DiscardHandler),
	}))(t)
	t.Cleanup(e.Close)
	return e
}

func methods(ids ...string) string {
	var list []string
	for _, id := range ids {
		list = append(list, fmt.Sprintf(`{"id":%q,"attributes":{"usage":"u","mcpTool":{}}}`, id))
	}
	return `{"data":[` + strings.Join(list, ",") + `]}`
}

func TestCallersWhoSeeTheSameShareOneCatalog(t *testing.T) {
	e := engine(t, listed(func(who caller.Caller) (string, error) {
		if who.Identity[0] == 'c' {
			return methods("x"), nil
		}
		return methods("x", "y"), nil
	}), time.Now)
	view := func(name string) *catalog.Catalog {
		v := must.Get(e.View(t.Context(), callerNamed(name)))(t)
		return v.Catalog()
	}
	a, b, c := view("a"), view("b"), view("c")
	must.Expect(t, a == b && a != c, "catalogs are not shared by content")
	if x, _ := a.Lookup("x"); x != c.Tools()[0] {
		t.Error("a tool of two catalogs is not shared")
	}
	x, err := a.Tools()[0].Input()
	y, wrong := a.Tools()[1].Input()
	must.Expect(t, err == nil && wrong == nil && x == y, "the same schema is compiled twice: %v %v", err, wrong)
}

// TestStrangersDisplaceNoCaller floods an engine that remembers two callers with such whom the site refuses.
func TestStrangersDisplaceNoCaller(t *testing.T) {
	var asked [256]int
	e := engine(t, listed(func(who caller.Caller) (string, error) {
		asked[who.Identity[0]]++
		if who.Identity[0] < 'a' {
			return "", fault.New(fault.AccessDenied, "no")
		}
		return methods("x"), nil
	}), time.Now)
	e.callers = recent.New[caller.Identity, *entry](2, nil)
	for _, name := range []string{"a", "b", "0", "1", "2", "3", "a", "b"} {
		_, err := e.View(t.Context(), callerNamed(name))
		must.Expect(t, (err == nil) == (name >= "a"), "%s: %v", name, err)
	}
	must.Expect(t, asked['a'] == 1 && asked['b'] == 1, "the site was asked %d and %d times for two callers", asked['a'], asked['b'])
}

func TestNobodyPaysForSetsThatAreGone(t *testing.T) {
	var n atomic.Int64
	var clock atomic.Int64
	e := engine(t, listed(func(caller.Caller) (string, error) { return methods(fmt.Sprint("m", n.Add(1))), nil }),
		func() time.Time { return time.Unix(clock.Add(60), 0) })
	for range 100 {
		_, err := e.View(t.Context(), callerNamed("a"))
		must.Assert(t, err == nil || fault.Is(err, fault.UpstreamUnavailable), "%v", err)
	}
	for range 10 {
		runtime.GC()
		if len(e.builder.sets.all()) < 5 {
			return
		}
	}
	t.Errorf("%d sets are kept for one caller", len(e.builder.sets.all()))
}

func TestSubscribersHearOfChangesAndNothingElse(t *testing.T) {
	var doc atomic.Value
	doc.Store(methods("a", "b"))
	var offset atomic.Int64
	e := engine(t, listed(func(caller.Caller) (string, error) { return doc.Load().(string), nil }),
		func() time.Time { return time.Unix(offset.Load(), 0) })
	must.Get(e.View(t.Context(), callerNamed("a")))(t)
	heard := make(chan catalog.Changes, 10)
	cancel := e.Subscribe(callerNamed("a"), func(c catalog.Changes, _ *catalog.Catalog) { heard <- c })
	offset.Add(61) // the poller asks again, and finds nothing new
	must.Become(t, 5*time.Second, func() bool { return e.fresh(e.entry(callerNamed("a")).known.Load()) }, "nobody polls for a subscriber")
	doc.Store(methods("b", "c"))
	offset.Add(61)
	select {
	case c := <-heard:
		must.Expect(t, fmt.Sprint(c) == "{[c] [a] []}", "changes %v", c)
	case <-time.After(5 * time.Second):
		t.Fatal("a change was not notified")
	}
	cancel()
	must.Expect(t, len(heard) == 0, "notified %d times more", len(heard))
}

// Names that are one name to clients which replace characters are noted, and the tools stay.
func TestNamesThatCollide(t *testing.T) {
	long := strings.Repeat("x", 64)
	for ids, want := range map[[2]string]bool{
		{"a.b", "a_b"}: true, {"Node.get", "node.get"}: true, {long + "1", long + "2"}: true, {"é", "_"}: true,
		{"a.b", "a.c"}: false, {"a-b", "a_b"}: false, {long[1:] + "1", long[1:] + "2"}: false,
	} {
		b := must.Get(newBuilder(Rules{PageSize: 50}, false, slog.New(slog.DiscardHandler)))(t)
		a := must.Get(response(t.Context(), methods(ids[:]...)))(t)
		s := must.Get(b.build(t.Context(), JSONRPC{}, a, nil, ""))(t)
		must.Expect(t, len(s.catalog.Tools()) == 2 && (len(s.colliding) > 0) == want && (len(s.diagnostics) > 0) == want,
			"%.20q: %d tools, colliding %q, %v", ids, len(s.catalog.Tools()), s.colliding, s.diagnostics)
	}
}

// Whatever a site lists, reading it neither panics nor loses one tool for another's sake.
func FuzzRead(f *testing.F) {
	f.Add(methods("x"))
	f.Add(`{"data":[null,{"id":"a","attributes":[]},{"id":"b","attributes":{"params":{"p":[]}}}],"meta":{"mcp":null}}`)
	f.Add(`{"data":[{"id":"a"},{"":[{}}}]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		b := must.Get(newBuilder(Rules{PageSize: 50, Expose: ExposePatterns, Include: []string{"*"}, Exclude: []string{}}, false, slog.New(slog.DiscardHandler)))(t)
		a, err := response(t.Context(), doc)
		if err != nil {
			return
		}
		s, err := b.build(t.Context(), JSONRPC{}, a, nil, "")
		if err != nil {
			return
		}
		d := must.Get(JSONRPC{}.Read(a))(t)
		quarantined := 0
		for _, note := range s.diagnostics {
			if note.Quarantined {
				quarantined++
			}
		}
		must.Expect(t, len(s.catalog.Tools())+quarantined <= len(d.Methods),
			"%d tools and %d in quarantine of %d methods", len(s.catalog.Tools()), quarantined, len(d.Methods)) // the same is said once
	})
}

// What another replica says of a caller's tools makes this one refetch them, at most once in a while, and does not keep it from
// refetching them again for a call that the site then refuses.
func TestDoubtAfterNews(t *testing.T) {
	fetched := 0
	e := engine(t, listed(func(caller.Caller) (string, error) { fetched++; return methods("x"), nil }), time.Now)
	who := callerNamed("a")
	for range 3 {
		must.Get(e.View(t.Context(), who))(t)
		e.Heard(who.Identity, "other")
	}
	must.Expect(t, fetched == 2, "%d fetches after news that came again, want 2", fetched)
	e.Doubt(t.Context(), who, Tools)
	must.Expect(t, fetched == 3, "%d fetches after a refusal, want 3", fetched)
}
