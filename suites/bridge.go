package suites

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/onsi/ginkgo/v2"
	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/generate"
	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// Environment is the target of a run: a URL to speak to, the site behind it where there is one, and what the run was told.
type Environment struct {
	Upstream        *Upstream     // the wire to the site; nil in a black-box run
	Drupal          *Drupal       // the mock site at its end; nil in a black-box run and before a real site
	PageSize        int           // how many tools a full page holds
	DiscoveryTTL    time.Duration // how long the bridge may show a changed site's old state; 0: unknown
	UpstreamTimeout time.Duration // how long the bridge waits for the site; 0: unknown

	ctx         context.Context // of the whole run
	end         func(why error) // ends the whole run
	met         bool            // the bridge has answered as one
	url         string
	claimed     []string
	credentials map[Identity]Credentials
	invocable   []Invocation
	invalidate  *Invalidate
	patterns    Patterns
	rateLimit   int
	seed        int64
	cases       int // made up for one check at most
	makers      *generate.Makers
	taken       map[takenBy]*generate.Maker // of what was made up that which the tool takes; nil: nothing
	stdio       func(context.Context) (io.ReadWriteCloser, error)
	advance     func(time.Duration)
	timeout     time.Duration
	transport   *http.Transport
	pace        *rate.Limiter // of our own requests; nil: none
	contract    *contract.Contract
	redact      *redact.Redactor
	selected    func(id string) bool
	lifeless    string // why nothing can be judged: the target is no bridge
	bodies      documents
	unseen      []string // changes of the site that the bridge did not show in time
	running     *T       // the check that runs, or ran last
}

// Bridge is the target as one check sees it, with all that the check sends and finds.
type T struct {
	*Environment

	inCheck   bool // a spec is running, so that Skip has something to end
	mu        sync.Mutex
	judging   bool // the check has not come to its clean-up
	exchanges []*exchange
	blamed    *Response
	findings  findings
	failed    *Finding // that ended the check
	apartNow  bool     // a part of the check is running: its finding does not end the check
}

// Invocation is a call that a run without a mock may make.
type Invocation struct {
	Tool      string
	Identity  Identity
	Arguments fixtures.Raw // a JSON object; nil: {}
	Status    int          // that it must answer; 0: 200
	Result    fixtures.Raw // that it must give; nil: any
}

// Invalidate is the call that empties a bridge's cache.
type Invalidate struct {
	Method, Path string
	Identity     Identity
}

// Sees is what of a target a check has to observe.
type Sees int

// What checks observe.
const (
	Front   Sees = iota // the bridge's URL alone
	Journal             // and the requests that reach the site, and faults on their way: a mock or a recording proxy
	Site                // and the site itself, which it may change: a mock
)

// Check is the check of one clause. The contract says what must be; the check says how that is seen.
type Check struct {
	ID          string // of the clause
	Sees        Sees
	Changes     bool                            // it changes what the site offers
	Generated   bool                            // it sends many generated cases, as many as Options.Cases at most
	Costly      bool                            // it sends so much that the selftest runs it only where it matters
	Run         func(ctx context.Context, t *T) // the check
	WithoutSite func(ctx context.Context, t *T) // for a run without a mock, by calls that the configuration allows; nil: not testable there
}

// check registers the spec of one check. The contract decides whether it applies: a capability that is not claimed makes
// it not applicable, a site that cannot be seen makes it not testable.
func (r *Environment) check(c Check) {
	clause, ok := r.contract.Clause(c.ID)
	if !ok {
		panic(c.ID + " is not in the contract")
	}
	labels := ginkgo.Label(string(clause.Level), "wire:"+string(clause.Wire))
	if clause.Needs != "" {
		labels = append(labels, "needs:"+clause.Needs)
	}
	ginkgo.It(c.ID, labels, func(ctx ginkgo.SpecContext) {
		t := r.begin()
		defer t.cleansUp()
		t.gate(clause)
		run := c.Run
		if c.Sees != Front && t.Drupal == nil {
			run = t.withoutMock(c)
		}
		run(ctx, t)
		if t.wrong() {
			t.findings.summed = true
			ginkgo.Fail("parts of it are wrong")
		}
	})
}

// Cleanup undoes something when the running check has ended.
func Cleanup(undo func(context.Context)) {
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { undo(ctx) })
}

// Logf notes something beside the verdict, which -v shows.
func Logf(format string, args ...any) { ginkgo.GinkgoWriter.Printf(format+"\n", args...) }

// Recover is deferred by every goroutine of a check, so that what ends the check there ends it as a whole.
var Recover = ginkgo.GinkgoRecover

// gate ends the running spec where its clause does not apply or cannot be judged.
func (t *T) gate(clause contract.Clause) {
	if t.ctx.Err() != nil {
		t.cutShort()
	}
	if needs := t.lacks(clause); needs != "" {
		skip(notApplicable, Finding{Subject: "the bridge does not claim the capability " + needs})
	}
	if t.lifeless != "" {
		t.Fail(Finding{Subject: t.lifeless})
	}
}

// requires is the capability that a clause stands under. Clauses on the three endpoints that name none need those.
func requires(c contract.Clause) string {
	if c.Needs == "" {
		return "tools"
	}
	return c.Needs
}

// lacks names a capability without which a clause does not apply and that the bridge does not claim; "" when it has all.
// All but MCP is seen through the three endpoints.
func (e *Environment) lacks(c contract.Clause) string {
	switch needs := requires(c); {
	case !e.Claims(needs):
		return needs
	case !e.Claims("tools") && !strings.HasPrefix(needs, "mcp"):
		return "tools"
	}
	return ""
}

// Claims tells whether the bridge claims a capability.
func (e *Environment) Claims(capability string) bool { return slices.Contains(e.claimed, capability) }

// As gives a client that speaks as the identity. Without credentials for it, the running check is not testable.
func (t *T) As(who Identity) Client {
	creds, ok := t.credentialsOf(who)
	if !ok {
		NotTestable(fmt.Sprintf("there are no credentials for %s", who))
	}
	return Client{t: t, who: who, creds: creds}
}

// With gives a client that signs in with credentials of the check's own making; name stands in the evidence.
func (t *T) With(name Identity, creds Credentials) Client {
	for _, secret := range creds.secrets() {
		if !t.isName(secret) { // a wrong password may be somebody's name, which messages need
			t.redact.Add(secret)
		}
	}
	return Client{t: t, who: name, creds: creds}
}

// isName tells whether a text is the name of an account of the site.
func (t *T) isName(text string) bool {
	if t.Drupal == nil {
		return false
	}
	_, ok := t.Drupal.Site().User(text)
	return ok
}

func (t *T) credentialsOf(who Identity) (Credentials, bool) {
	if creds, ok := t.credentials[who]; ok {
		return creds, true
	}
	if who == Anonymous {
		return Credentials{}, true
	}
	if t.Drupal == nil {
		return Credentials{}, false
	}
	user, ok := t.Drupal.Site().User(string(who))
	if !ok {
		return Credentials{}, false
	}
	creds := Credentials{User: user.Name, Password: user.Password}
	switch {
	case t.Claims("auth-basic"):
	case t.Claims("auth-bearer") && len(user.Tokens) > 0:
		creds = Credentials{Token: user.Tokens[0].Value}
	case t.Claims("auth-cookie"):
		creds = Credentials{Cookie: t.Drupal.session(who)}
	}
	t.redact.Add(creds.secrets()...)
	return creds, true
}

// NotTestable ends the running check without a verdict: what it needs is not there. The reason says what is missing,
// or what would make the clause testable.
func NotTestable(reason string) { skip(notTestable, Finding{Subject: reason}) }

// Untestable is NotTestable for what a finding explains; the reason stands before it.
func Untestable(reason string, why Finding) {
	why.Subject = reason + why.Subject
	skip(notTestable, why)
}

// skipKind tells the collector of results why a spec ended without a verdict.
type skipKind string

const (
	notApplicable skipKind = "not applicable"
	notTestable   skipKind = "not testable"
	wasCutShort   skipKind = "cut short"
)

func skip(kind skipKind, why Finding) {
	ginkgo.AddReportEntry(string(kind), ginkgo.ReportEntryVisibilityNever, why)
	ginkgo.Skip(why.String())
}

// cutShort ends the running check because the whole run has ended.
func (t *T) cutShort() {
	if t.inCheck {
		skip(wasCutShort, Finding{Subject: "the run ended before this was judged"})
	}
}

// ChangeSite puts another site behind the bridge for the rest of the running check and waits until the bridge shows
// it: seen is asked again and again, at most for the discovery TTL and some slack. Where the bridge goes on showing the
// old site, the check is not testable: fresh/ttl-expiry judges that.
func (t *T) ChangeSite(ctx context.Context, site *fixtures.Site, seen func() bool) {
	t.Replace(ctx, site)
	t.awaitShown(ctx, "the site "+site.Name, seen)
}

// awaitShown waits until the bridge shows what changed at the site, else the check is not testable. What was waited for in
// vain once is not waited for again.
func (t *T) awaitShown(ctx context.Context, what string, seen func() bool) {
	if !slices.Contains(t.unseen, what) {
		if t.Await(ctx, seen) {
			return
		}
		t.unseen = append(t.unseen, what)
	}
	NotTestable(fmt.Sprintf("the bridge does not show %s within %v of the change (fresh/ttl-expiry judges that)", what, t.patience()))
}

// Replace puts another site behind the bridge and does not wait. The old site comes back when the check ends. Where
// nobody knows how long the bridge may show the old one, the check is not testable.
func (t *T) Replace(ctx context.Context, site *fixtures.Site) {
	if t.DiscoveryTTL == 0 {
		NotTestable("it changes the site, and how long the bridge may show the old one is unknown: give --discovery-ttl")
	}
	before, listed := t.Drupal.Site(), t.listed(ctx)
	other := *site
	other.Auth = before.Auth // callers sign in as before
	t.Drupal.mock.SetSite(&other)
	Cleanup(func(ctx context.Context) {
		t.Drupal.mock.SetSite(before)
		t.Await(ctx, func() bool { return sameInAnyOrder(t.listed(ctx), listed) })
	})
}

// listed names the tools that the agent is shown now, by MCP where there is nothing else; none where there is no list.
func (t *T) listed(ctx context.Context) []string {
	if !t.Claims("tools") {
		return t.As(Agent).listedByMCP(ctx)
	}
	return t.As(Agent).ListAll(ctx).Names()
}

// Await lets the discovery TTL pass and polls until done, at most for the time that the bridge has to notice a change.
func (t *T) Await(ctx context.Context, done func() bool) bool {
	t.expire()
	return t.poll(ctx, done)
}

// poll asks until done, at most for the time that the bridge has to notice a change.
func (t *T) poll(ctx context.Context, done func() bool) bool {
	return within(ctx, t.patience(), done)
}

// within asks until done, at most for the time given.
func within(ctx context.Context, limit time.Duration, done func() bool) bool {
	tick := time.NewTicker(min(20*time.Millisecond, max(limit/100, time.Millisecond)))
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		if done() {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return done()
		case <-ctx.Done():
			return false
		}
	}
}

// patience is how long a change may take to show: the TTL, and slack for a busy machine.
func (t *T) patience() time.Duration {
	if t.advance != nil {
		return 2 * time.Second
	}
	return t.DiscoveryTTL + 3*time.Second
}

// Visible lists the names of the tools that the bridge must show the caller, in the site's order.
func (t *T) Visible(who Identity) []string {
	site := t.Drupal.Site()
	user, ok := site.User(string(who))
	if !ok {
		return nil
	}
	var names []string
	for i := range site.Methods {
		m := &site.Methods[i]
		shown := t.Claims("visibility-broad") || site.Holds(user, fixtures.UseJSONRPC) && site.MayRun(user, m)
		if shown && t.exposed(m) {
			names = append(names, t.ToolName(m.ID))
		}
	}
	return names
}

// exposed tells whether a method is a tool: by its attribute, or by the patterns where the bridge goes by those.
func (t *T) exposed(m *fixtures.Method) bool {
	if t.Claims("exposure-patterns") {
		return t.patterns.Exposes(m.ID)
	}
	return m.MCP != nil
}

// ToolName is the name under which the bridge must list a method. Ids that collide when underscored have no name that
// the contract foretells: mapping/name-underscored judges those.
func (t *T) ToolName(id string) string {
	if !t.Claims("naming-underscore") {
		return id
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, id)
}

// userOf looks an account up that is known to exist.
func userOf(site *fixtures.Site, who Identity) *fixtures.User {
	user, _ := site.User(string(who))
	return user
}

// sameInAnyOrder tells whether two lists hold the same names.
func sameInAnyOrder(one, two []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(two)))
}
