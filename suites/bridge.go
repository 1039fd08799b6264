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
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/suites/contract"
	"github.com/bridgecheck/bridgecheck/suites/generate"
	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// Bridge is the target of a run as the checks see it: a URL to speak to, and the site behind it where there is one.
type Bridge struct {
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
	judged      map[string]bool // ids with a check, whether selected or not
	lifeless    string          // why nothing can be judged: the target is no bridge

	inCheck   bool // a spec is running, so that Skip has something to end
	judging   bool // and has not come to its clean-up
	mu        sync.Mutex
	exchanges []*recorded
	blamed    *Answer
	findings  findings // of the running check
	bodies    documents
	unseen    []string // changes of the site that the bridge did not show in time
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

// areaFunc registers the checks of one area.
type areaFunc struct {
	name     string
	register func(*Bridge)
}

var areas []areaFunc

// Area declares the checks of one area of the ledger. It is called at the top of the area's file.
func Area(name string, register func(b *Bridge)) bool {
	areas = append(areas, areaFunc{name, register})
	return true
}

// Check registers the spec that judges one clause. The ledger decides whether it applies: a capability that is not
// claimed makes it not applicable, a missing mock makes a clause of both wires not testable. An id that is not in the
// ledger, or has a check already, is a defect of this build and panics at start.
func (b *Bridge) Check(id string, judge func(ctx ginkgo.SpecContext), decorators ...any) {
	clause, ok := b.contract.Clause(id)
	if !ok {
		panic(fmt.Sprintf("%s is not in the ledger; the nearest is %s", id, suggest.Nearest(id, b.contract.IDs())))
	}
	if b.judged[id] {
		panic(id + " has two checks")
	}
	b.judged[id] = true
	if !b.selected(id) {
		return
	}
	labels := ginkgo.Label(string(clause.Level), "wire:"+string(clause.Wire))
	if clause.Needs != "" {
		labels = append(labels, "needs:"+clause.Needs)
	}
	ginkgo.It(id, append(decorators, labels, func(ctx ginkgo.SpecContext) {
		b.begin()
		defer b.cleansUp()
		b.gate(clause)
		if clause.Wire == contract.Both && b.Drupal == nil {
			judge = b.withoutMock(id, judge)
		}
		judge(ctx)
		if b.wrong() {
			b.findings.summed = true
			ginkgo.Fail("parts of it are wrong")
		}
	})...)
}

// gate ends the running spec where its clause does not apply or cannot be judged.
func (b *Bridge) gate(clause contract.Clause) {
	if b.ctx.Err() != nil {
		b.cutShort()
	}
	if needs := b.lacks(clause); needs != "" {
		skip(notApplicable, fmt.Sprintf("the bridge does not claim the capability %s", needs))
	}
	if b.lifeless != "" {
		ginkgo.Fail(b.lifeless)
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
func (b *Bridge) lacks(c contract.Clause) string {
	switch needs := requires(c); {
	case !b.Claims(needs):
		return needs
	case !b.Claims("tools") && !strings.HasPrefix(needs, "mcp"):
		return "tools"
	}
	return ""
}

// Claims tells whether the bridge claims a capability.
func (b *Bridge) Claims(capability string) bool { return slices.Contains(b.claimed, capability) }

// As gives a client that speaks as the identity. Without credentials for it, the running check is not testable.
func (b *Bridge) As(who Identity) Client {
	creds, ok := b.credentialsOf(who)
	if !ok {
		NotTestable(fmt.Sprintf("there are no credentials for %s", who))
	}
	return Client{bridge: b, who: who, creds: creds}
}

// With gives a client that signs in with credentials of the check's own making; name stands in the evidence.
func (b *Bridge) With(name Identity, creds Credentials) Client {
	for _, secret := range creds.secrets() {
		if !b.isName(secret) { // a wrong password may be somebody's name, which messages need
			b.redact.Add(secret)
		}
	}
	return Client{bridge: b, who: name, creds: creds}
}

// isName tells whether a text is the name of an account of the site.
func (b *Bridge) isName(text string) bool {
	if b.Drupal == nil {
		return false
	}
	_, ok := b.Drupal.Site().User(text)
	return ok
}

func (b *Bridge) credentialsOf(who Identity) (Credentials, bool) {
	if creds, ok := b.credentials[who]; ok {
		return creds, true
	}
	if who == Anonymous {
		return Credentials{}, true
	}
	if b.Drupal == nil {
		return Credentials{}, false
	}
	user, ok := b.Drupal.Site().User(string(who))
	if !ok {
		return Credentials{}, false
	}
	creds := Credentials{User: user.Name, Password: user.Password}
	switch {
	case b.Claims("auth-basic"):
	case b.Claims("auth-bearer") && len(user.Tokens) > 0:
		creds = Credentials{Token: user.Tokens[0].Value}
	case b.Claims("auth-cookie"):
		creds = Credentials{Cookie: b.Drupal.session(who)}
	}
	b.redact.Add(creds.secrets()...)
	return creds, true
}

// NotTestable ends the running check without a verdict: what it needs is not there. The reason says what is missing,
// or what would make the clause testable.
func NotTestable(reason string) { skip(notTestable, reason) }

// skipKind tells the collector of results why a spec ended without a verdict.
type skipKind string

const (
	notApplicable skipKind = "not applicable"
	notTestable   skipKind = "not testable"
	wasCutShort   skipKind = "cut short"
)

func skip(kind skipKind, reason string) {
	ginkgo.AddReportEntry(string(kind), ginkgo.ReportEntryVisibilityNever)
	ginkgo.Skip(reason)
}

// cutShort ends the running check because the whole run has ended.
func (b *Bridge) cutShort() {
	if b.inCheck {
		skip(wasCutShort, "the run ended before this was judged")
	}
}

// ChangeSite puts another site behind the bridge for the rest of the running check and waits until the bridge shows
// it: seen is asked again and again, at most for the discovery TTL and some slack. Where the bridge goes on showing the
// old site, the check is not testable: fresh/ttl-expiry judges that.
func (b *Bridge) ChangeSite(ctx context.Context, site *fixtures.Site, seen func() bool) {
	b.Replace(ctx, site)
	b.awaitShown(ctx, "the site "+site.Name, seen)
}

// awaitShown waits until the bridge shows what changed at the site, else the check is not testable. What was waited for in
// vain once is not waited for again.
func (b *Bridge) awaitShown(ctx context.Context, what string, seen func() bool) {
	if !contains(b.unseen, what) {
		if b.Await(ctx, seen) {
			return
		}
		b.unseen = append(b.unseen, what)
	}
	NotTestable(fmt.Sprintf("the bridge does not show %s within %v of the change (fresh/ttl-expiry judges that)", what, b.patience()))
}

// Replace puts another site behind the bridge and does not wait. The old site comes back when the check ends. Where
// nobody knows how long the bridge may show the old one, the check is not testable.
func (b *Bridge) Replace(ctx context.Context, site *fixtures.Site) {
	if b.DiscoveryTTL == 0 {
		NotTestable("it changes the site, and how long the bridge may show the old one is unknown: give --discovery-ttl")
	}
	before, listed := b.Drupal.Site(), b.listed(ctx)
	other := *site
	other.Auth = before.Auth // callers sign in as before
	b.Drupal.mock.SetSite(&other)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		b.Drupal.mock.SetSite(before)
		b.Await(ctx, func() bool { return sameInAnyOrder(b.listed(ctx), listed) })
	})
}

// listed names the tools that the agent is shown now, by MCP where there is nothing else; none where there is no list.
func (b *Bridge) listed(ctx context.Context) []string {
	if !b.Claims("tools") {
		return b.As(Agent).listedByMCP(ctx)
	}
	return b.As(Agent).ListAll(ctx).Names()
}

// Await lets the discovery TTL pass and polls until done, at most for the time that the bridge has to notice a change.
func (b *Bridge) Await(ctx context.Context, done func() bool) bool {
	b.expire()
	return b.poll(ctx, done)
}

// poll asks until done, at most for the time that the bridge has to notice a change.
func (b *Bridge) poll(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(b.patience())
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
func (b *Bridge) patience() time.Duration {
	if b.advance != nil {
		return 2 * time.Second
	}
	return b.DiscoveryTTL + 3*time.Second
}

// Visible lists the names of the tools that the bridge must show the caller, in the site's order.
func (b *Bridge) Visible(who Identity) []string {
	site := b.Drupal.Site()
	user, ok := site.User(string(who))
	if !ok {
		return nil
	}
	var names []string
	for i := range site.Methods {
		m := &site.Methods[i]
		shown := b.Claims("visibility-broad") || site.Holds(user, fixtures.UseJSONRPC) && site.MayRun(user, m)
		if shown && b.exposed(m) {
			names = append(names, b.ToolName(m.ID))
		}
	}
	return names
}

// exposed tells whether a method is a tool: by its attribute, or by the patterns where the bridge goes by those.
func (b *Bridge) exposed(m *fixtures.Method) bool {
	if b.Claims("exposure-patterns") {
		return b.patterns.Exposes(m.ID)
	}
	return m.MCP != nil
}

// ToolName is the name under which the bridge must list a method. Ids that collide when underscored have no name that
// the contract foretells: mapping/name-underscored judges those.
func (b *Bridge) ToolName(id string) string {
	if !b.Claims("naming-underscore") {
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
