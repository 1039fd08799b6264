package check

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Invocation is a call that a run without a mock may make.
type Invocation struct {
	Tool      string
	Identity  Identity
	Arguments fixtures.Raw // a JSON object; nil: {}
	Status    int          // that it must give; 0: 200
	Result    fixtures.Raw // that it must give; nil: any
}

// What makes a clause of the site side testable where the mock is not behind the bridge.
const (
	needsUpstream = "it needs to see the site behind the bridge: put the mock Drupal there (--mock-listen or --exec)"
	NeedsRecorder = "it needs to see what reaches the site: put the mock Drupal behind the bridge (--mock-listen or --exec), or a recording proxy before the site (--drupal-proxy)"
	NeedsSite     = "it needs to know the site's methods: give its URL (--drupal), or put the mock Drupal there (--mock-listen or --exec)"
	needsChange   = "it needs a site that can be changed: put the mock Drupal there (--mock-listen or --exec)"
)

// withoutMock returns what checks a clause in a run without a mock. Where nothing does, the clause is not testable.
func (t *T) withoutMock(c Check) func(context.Context, *T) {
	switch {
	case t.Site != nil && c.Sees == Discovery:
		return c.Run
	case c.WithoutSite != nil:
		return c.WithoutSite
	case t.Upstream != nil && c.Sees == Journal:
		return c.Run
	case c.Sees == Journal:
		NotTestable(NeedsRecorder)
	case t.Site != nil:
		NotTestable(needsChange)
	case t.SiteUnknown != "":
		NotTestable(t.SiteUnknown)
	case t.Upstream != nil || c.Sees == Discovery:
		NotTestable(NeedsSite)
	}
	NotTestable(needsUpstream)
	return nil
}

// Succeeds reports whether the call is one that has to work.
func (i Invocation) Succeeds() bool { return i.Status == 0 || i.Status == http.StatusOK }

// Object is the JSON object of the arguments.
func (i Invocation) Object() json.RawMessage {
	if i.Arguments == nil {
		return json.RawMessage("{}")
	}
	return i.Arguments
}

// Args are a copy of the arguments.
func (i Invocation) Args() Args {
	object, _ := exact.MustParse(i.Object()).(map[string]any) // it was read when the run began
	return object
}

// Body is the call as invoke takes it.
func (i Invocation) Body() []byte {
	return client.Encode(map[string]any{"name": i.Tool, "arguments": i.Object()})
}

// AsAgent is a call of the agent's without arguments.
func AsAgent(tool string) Invocation { return Invocation{Tool: tool, Identity: Agent} }
