package check

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal/published"
)

// SiteMethods is what a run knows of the methods of the site behind the bridge: a mock knows all, a real site is asked. What
// cannot be known of a real one ends the running check as not testable, with the reason.
type SiteMethods interface {
	Name() string
	// Methods lists them in the site's order: a mock's all, of a real site those that a caller of the run may run.
	Methods() []fixtures.Method
	// MayUse reports whether the caller may use JSON-RPC at all.
	MayUse(who Identity) bool
	// MayRun reports whether the caller may run a method by JSON-RPC.
	MayRun(who Identity, m *fixtures.Method) bool
	// Unknown says why it is not known what the caller may run; "" where it is.
	Unknown(who Identity) string
	// Marks reports whether it is known which methods carry the McpTool attribute.
	Marks() bool
}

// Name is the site's name, for messages.
func (d *Drupal) Name() string { return d.Site().Name }

// Methods are those of the site as it is served now.
func (d *Drupal) Methods() []fixtures.Method { return d.Site().Methods }

// MayUse goes by the permissions of the caller's account.
func (d *Drupal) MayUse(who Identity) bool {
	site := d.Site()
	user, ok := site.User(string(who))
	return ok && site.Holds(user, fixtures.UseJSONRPC)
}

// MayRun goes by the permissions of the caller's account.
func (d *Drupal) MayRun(who Identity, m *fixtures.Method) bool {
	site := d.Site()
	user, ok := site.User(string(who))
	return ok && site.Holds(user, fixtures.UseJSONRPC) && site.MayRun(user, m)
}

// Unknown is "": a mock knows its accounts.
func (*Drupal) Unknown(Identity) string { return "" }

// Marks is true: a mock knows its methods, whatever it publishes of them.
func (*Drupal) Marks() bool { return true }

// RealSite is a site of which a run knows nothing but its URL, and reads what it publishes, as each of its callers.
type RealSite struct {
	base   *url.URL
	client *http.Client
	env    *Environment

	mu    sync.Mutex
	reads map[Identity]reading
	all   func() []fixtures.Method // of all readers
}

// reading is what a site publishes to one caller, or why that is not known.
type reading struct {
	methods []fixtures.Method
	marks   bool
	refused bool // the caller may not use JSON-RPC
	unknown string
}

// readers are the callers by whose credentials the methods of a real site are read, beside those that a check needs.
var readers = []Identity{Agent, Agent2, Discoverer, Outsider, Service, Admin}

// NewRealSite reads the site at a base URL as the agent. It fails where the site does not show the agent its methods.
func NewRealSite(base *url.URL, transport http.RoundTripper, env *Environment) (*RealSite, error) {
	s := &RealSite{base: base, client: &http.Client{Transport: transport, Timeout: env.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		env: env, reads: map[Identity]reading{}}
	s.all = sync.OnceValue(s.join)
	if why := s.Unknown(Agent); why != "" {
		return nil, errors.New(why)
	}
	return s, nil
}

// Name is the site's host.
func (s *RealSite) Name() string { return s.base.Host }

func (s *RealSite) read(who Identity) reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.reads[who]
	if !ok {
		r = s.ask(who)
		s.reads[who] = r
	}
	return r
}

func (s *RealSite) ask(who Identity) reading {
	creds, ok := s.env.Credentials[who]
	if !ok && who != Anonymous {
		return reading{unknown: fmt.Sprintf("there are no credentials for %s", who)}
	}
	if s.env.Rate != nil {
		_ = s.env.Rate.Wait(s.env.Context) // the request says that the run has ended
	}
	doc, err := published.Read(s.env.Context, s.client, s.base, creds.Apply)
	var refused *published.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden && who != Agent,
		errors.As(err, &refused) && refused.Status == http.StatusUnauthorized && (who == Anonymous || who == Blocked):
		return reading{refused: true}
	case err != nil:
		return reading{unknown: fmt.Sprintf("the site %s does not show %s its methods: %s", s.Name(), who, exact.Cut(OneLine(s.env.Redact.Text(err.Error())), 200))}
	}
	return reading{methods: doc.Methods, marks: doc.Marks}
}

// Methods are those of the callers that the site shows any.
func (s *RealSite) Methods() []fixtures.Method { return s.all() }

func (s *RealSite) join() []fixtures.Method {
	all, seen := []fixtures.Method{}, map[string]bool{}
	for _, who := range readers {
		for _, m := range s.read(who).methods {
			if !seen[m.ID] {
				seen[m.ID] = true
				all = append(all, m)
			}
		}
	}
	return all
}

// MayUse reports whether the site shows the caller a list of methods, though it may be empty.
func (s *RealSite) MayUse(who Identity) bool {
	if why := s.Unknown(who); why != "" {
		NotTestable(why)
	}
	return !s.read(who).refused
}

// MayRun reports whether the site shows the method to the caller.
func (s *RealSite) MayRun(who Identity, m *fixtures.Method) bool {
	if why := s.Unknown(who); why != "" {
		NotTestable(why)
	}
	return slices.ContainsFunc(s.read(who).methods, func(shown fixtures.Method) bool { return shown.ID == m.ID })
}

// Unknown is why the site was not read as the caller.
func (s *RealSite) Unknown(who Identity) string { return s.read(who).unknown }

// Marks reports whether the site shows any caller the McpTool attribute.
func (s *RealSite) Marks() bool {
	return slices.ContainsFunc(readers, func(who Identity) bool { return s.read(who).marks })
}

// Changed reports whether the site shows a caller other methods than it did when it was first read.
func (s *RealSite) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for who, before := range s.reads {
		if before.unknown != "" {
			continue
		}
		now := s.ask(who)
		same := slices.EqualFunc(before.methods, now.methods, func(x, y fixtures.Method) bool { return reflect.DeepEqual(x, y) })
		if now.unknown != "" || !same {
			return true
		}
	}
	return false
}

// Exposed reports whether a method is a tool: by the patterns where the bridge goes by those, by its attribute, or, where a
// real site shows no attributes, because the bridge lists it to one of the callers.
func (t *T) Exposed(m *fixtures.Method) bool {
	switch {
	case !t.exposureKnown():
		return t.listedToAny()[t.ToolName(m.ID)]
	case t.Claims("exposure-patterns"):
		return t.PatternsInUse().Exposes(m.ID)
	}
	return m.MCP != nil
}

// exposureKnown reports whether it is known, without the bridge's list, which methods are tools.
func (t *T) exposureKnown() bool {
	if t.Claims("exposure-patterns") {
		return t.Drupal != nil || t.Patterns != nil
	}
	return t.Site.Marks()
}

// listedToAny are the names that the bridge lists to the callers of the run.
func (t *T) listedToAny() map[string]bool {
	if t.listed == nil {
		t.listed = map[string]bool{}
		for _, who := range t.Callers(Agent, Discoverer, Admin, Service) {
			for _, name := range t.As(who).ListAll(t.Context).Names() {
				t.listed[name] = true
			}
		}
	}
	return t.listed
}

// Visible lists the names of the tools that the bridge must show the caller, in the site's order.
func (t *T) Visible(who Identity) []string {
	var names []string
	methods := t.Site.Methods()
	for i := range methods {
		m := &methods[i]
		shown := t.Claims("visibility-broad") || t.Site.MayRun(who, m)
		if shown && t.Exposed(m) {
			names = append(names, t.ToolName(m.ID))
		}
	}
	return names
}

// Method is the site's method with an id.
func (t *T) Method(id string) (*fixtures.Method, bool) {
	methods := t.Site.Methods()
	i := slices.IndexFunc(methods, func(m fixtures.Method) bool { return m.ID == id })
	if i < 0 {
		return nil, false
	}
	return &methods[i], true
}

// MustMark ends a check that needs the McpTool attributes where the site does not show them.
func (t *T) MustMark() {
	if !t.Site.Marks() {
		NotTestable(fmt.Sprintf("the site %s does not show the McpTool attributes of its methods: put the mock Drupal there (--mock-listen or --exec)", t.Site.Name()))
	}
}

// excuseChange excuses what the running check found where a real site has changed since it was read.
func (t *T) excuseChange() {
	if site, ok := t.Site.(*RealSite); ok && site.Changed() {
		t.Excuse(fmt.Sprintf("the methods that the site %s shows have changed during the run: run again while nobody changes them", site.Name()))
	}
}
