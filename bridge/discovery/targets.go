package discovery

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// Targets looks up what references to an entity type may take, by a method of the site. nil looks up nothing.
type Targets struct {
	Site   *upstream.Client
	Method string // {target} stands for the entity type, as in {target}.list
	Value  string // the member of each item that is the value; items that are strings are values themselves
	Max    int    // with more values than this the reference takes any string
}

// lookups is how many look-ups run at one time, and maxTargets how many a response can ask for.
const lookups, maxTargets = 4, 1000

// of finds the values for every entity type that a response refers to; callable are the methods that the caller may call,
// nil: those of the response. A look-up that the caller may not do, or that fails, leaves its references open to any value:
// it must not cost the discovery.
func (t *Targets) of(ctx context.Context, who caller.Caller, source Source, tr translate.Translator, a Response, callable map[string]bool) map[string][]string {
	if t == nil || !a.mentions(`"target_type"`) {
		return nil // by far the most sites; the response need not even be read
	}
	shown, err := source.Read(a)
	if err != nil {
		return nil // who builds the catalog meets the same error
	}
	if callable == nil {
		callable = map[string]bool{}
		for _, m := range shown.Methods {
			callable[m.ID] = true
		}
	}
	wanted := map[string]string{} // method by target
	for _, m := range shown.Methods {
		method, err := m.Method()
		if err != nil || !bytes.Contains(m.Raw, []byte(`"target_type"`)) {
			continue
		}
		for _, target := range tr.TargetsOf(method) {
			if len(wanted) == maxTargets {
				break
			}
			wanted[target] = strings.ReplaceAll(t.Method, "{target}", target)
		}
	}
	var mu sync.Mutex
	values := map[string][]string{}
	var group errgroup.Group
	group.SetLimit(lookups)
	for target, method := range wanted {
		if !callable[method] {
			continue
		}
		group.Go(func() error {
			found := t.values(ctx, who, method)
			mu.Lock()
			defer mu.Unlock()
			values[target] = found
			return nil
		})
	}
	group.Wait() //nolint:errcheck // no look-up gives an error
	return values
}

// values calls one look-up method; nil when it fails or gives more than an enum should hold.
func (t *Targets) values(ctx context.Context, who caller.Caller, method string) []string {
	result, err := t.Site.Call(ctx, who, method, []byte("{}"))
	if err != nil {
		return nil
	}
	list, err := jsondoc.SplitList(result, t.Max)
	if err != nil {
		return nil
	}
	var found []string
	for _, item := range list.Items {
		item, err := jsondoc.Parse(item.Raw)
		if err != nil {
			return nil
		}
		if v, ok := item.Get(t.Value); ok {
			item = v
		}
		if s, ok := item.Text(); ok {
			found = append(found, s)
		}
	}
	return found
}
