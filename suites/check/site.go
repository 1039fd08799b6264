package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// ChangeSite puts another site behind the bridge for the rest of the running check and waits until the bridge shows it: it
// calls seen until that returns true, at most for the discovery TTL and some slack. If the bridge still shows the old site
// then, the check is not testable: fresh/ttl-expiry tests that.
func (t *T) ChangeSite(ctx context.Context, site *fixtures.Site, seen func() bool) {
	t.Replace(ctx, site)
	t.AwaitShown(ctx, "the site "+site.Name, seen)
}

// Replace puts another site behind the bridge and does not wait. The old site comes back when the check ends. If it is
// unknown how long the bridge may cache the old one, the check is not testable.
func (t *T) Replace(ctx context.Context, site *fixtures.Site) {
	if t.DiscoveryTTL == 0 {
		NotTestable("the check changes the site, and how long the bridge may cache its tools is unknown: give --discovery-ttl")
	}
	if t.replaced { // the site that was there first comes back in the end, and that is waited for
		t.setSite(site)
		return
	}
	before, listed := t.Drupal.Site(), t.ListedNames(ctx)
	t.replaced = true
	t.setSite(site)
	t.Cleanup(func(ctx context.Context) {
		t.replaced = false
		t.Drupal.Mock.SetSite(before)
		t.Await(ctx, func() bool { return sameInAnyOrder(t.ListedNames(ctx), listed) })
	})
}

// setSite puts a site in place whose callers authenticate as before.
func (t *T) setSite(site *fixtures.Site) {
	other := *site
	other.Auth = t.Drupal.Site().Auth
	t.Drupal.Mock.SetSite(&other)
}

// ListedNames names the tools that the bridge shows the agent now, by MCP if that is its only interface; none if it has no list.
func (t *T) ListedNames(ctx context.Context) []string {
	if !t.Claims("tools") {
		return t.As(Agent).ListedByMCP(ctx)
	}
	return t.As(Agent).ListAll(ctx).Names()
}

// ToolName is the name under which the bridge must list a method. The contract determines no name for ids that collide
// when underscored: mapping/name-underscored tests those.
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

// UserOf looks an account up that is known to exist.
func UserOf(site *fixtures.Site, who Identity) *fixtures.User {
	user, _ := site.User(string(who))
	return user
}

// sameInAnyOrder reports whether two lists hold the same names.
func sameInAnyOrder(one, two []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(two)))
}

// Recorder keeps a journal of what reaches a site, and makes the site misbehave: the mock is one itself, and so is a
// recording proxy before a real one.
type Recorder interface {
	Journal() *mockdrupal.Journal
	Arm(mockdrupal.Fault) (disarm func(), err error)
}

// SiteSide is the connection between bridge and site as the checks see it. A nil *SiteSide stands for a run that does not
// see the site, and reports no requests.
type SiteSide struct {
	Recorder Recorder
	Proxy    bool               // Recorder stands before a real site
	since    int64              // journal position at which the running check began
	caused   []mockdrupal.Entry // in place of the journal: what the row of a Table did that the check looks at; nil: it looks at none
	armed    atomic.Int32
	cleanup  func(undo func(context.Context)) // of the running check
}

// Faulty reports whether a fault of the site is armed: then a bridge without a response may be correct.
func (u *SiteSide) Faulty() bool { return u != nil && u.armed.Load() > 0 }

// Mark sets the position from which Journal, Calls and Runs read the journal to its end.
func (u *SiteSide) Mark() { u.since, u.caused = u.Last(), nil }

// Journal lists the requests that reached the site since the check began or since the last Mark. If the journal has dropped
// some of them, the running check is not testable.
func (u *SiteSide) Journal() []mockdrupal.Entry {
	if u.caused != nil {
		return u.caused
	}
	journal := u.Recorder.Journal()
	if lost := journal.Lost(u.since); lost > 0 {
		NotTestable(fmt.Sprintf("the site's journal has dropped %d requests of this check", lost))
	}
	return journal.Entries(u.since)
}

// Calls lists the JSON-RPC calls in the journal, of the given methods or of all.
func (u *SiteSide) Calls(methods ...string) []mockdrupal.Call {
	var calls []mockdrupal.Call
	for _, entry := range u.Journal() {
		for _, call := range entry.Calls {
			if len(methods) == 0 || slices.Contains(methods, call.Method) {
				calls = append(calls, call)
			}
		}
	}
	return calls
}

// Runs lists the calls whose method ran.
func (u *SiteSide) Runs(methods ...string) []mockdrupal.Call {
	return slices.DeleteFunc(u.Calls(methods...), func(c mockdrupal.Call) bool { return !c.Ran })
}

// Arm makes the site misbehave for the rest of the running check, or until disarm is called.
func (u *SiteSide) Arm(fault mockdrupal.Fault) (disarm func()) {
	disarm, err := u.TryArm(fault)
	if err != nil && u.Proxy {
		NotTestable(fmt.Sprintf("the recording proxy has no such fault of the site: %v", err))
	}
	if err != nil {
		panic(fmt.Sprintf("a check arms an impossible fault: %v", err))
	}
	return disarm
}

// TryArm is Arm for faults that not every machine supports; the error says why this one does not.
func (u *SiteSide) TryArm(fault mockdrupal.Fault) (disarm func(), err error) {
	lift, err := u.Recorder.Arm(fault)
	if err != nil {
		return nil, err
	}
	u.armed.Add(1)
	disarm = sync.OnceFunc(func() {
		lift()
		u.armed.Add(-1)
	})
	u.cleanup(func(context.Context) { disarm() })
	return disarm, nil
}

func (u *SiteSide) Last() int64 {
	if u == nil {
		return 0
	}
	return u.Recorder.Journal().Last()
}

// Controlled is a site whose methods and accounts can be changed: a mock, or a real site behind its control plane.
type Controlled interface {
	Site() *fixtures.Site   // as it is now: read only
	SetSite(*fixtures.Site) // as one step; where that is impossible the running check is not testable
	OpenSession(account string) (cookie string)
	EndSessions(account string)
}

// Drupal is a site side with a site behind it whose data are known and can be changed: most often the mock. T.Replace and Arm are undone
// when the check ends; a check that changes the site's methods in another way undoes it by Cleanup.
type Drupal struct {
	*SiteSide
	Mock     Controlled
	Prefix   string // of the names that checks give to accounts and tools: a bridge that is up may remember those of another run
	users    atomic.Int64
	accounts sync.Map // Identity → true: those of NewUsers
	sessions sync.Map // Identity → cookie
}

// Session is the cookie of an account's session, one for the whole run.
func (d *Drupal) Session(who Identity) string {
	if cookie, open := d.sessions.Load(who); open {
		return cookie.(string)
	}
	cookie, _ := d.sessions.LoadOrStore(who, d.Mock.OpenSession(string(who)))
	return cookie.(string)
}

// Site is the site as it is served now.
func (d *Drupal) Site() *fixtures.Site { return d.Mock.Site() }

// NewUser creates an account that the bridge does not know yet, with the given permissions, for the running check.
func (d *Drupal) NewUser(permissions ...string) Identity { return d.NewUsers(1, permissions...)[0] }

// NewUsers creates n such accounts.
func (d *Drupal) NewUsers(n int, permissions ...string) []Identity {
	created := make([]Identity, n)
	d.ChangePeople(func(site *fixtures.Site) {
		uid := 0
		for _, u := range site.Users {
			uid = max(uid, u.UID)
		}
		for i := range created {
			name := fmt.Sprintf("check%s%d", d.Prefix, d.users.Add(1))
			created[i] = Identity(name)
			d.accounts.Store(created[i], true)
			site.Roles = append(site.Roles, fixtures.Role{ID: name, Permissions: permissions})
			site.Users = append(site.Users, fixtures.User{UID: uid + 1 + i, Name: name, Password: name + "-pass", Roles: []string{name},
				Tokens: []fixtures.Token{{Value: name + "-token"}}})
		}
	})
	return created
}

// made reports whether an account is one of NewUsers.
func (d *Drupal) made(who Identity) bool {
	_, ok := d.accounts.Load(who)
	return ok
}

// Permit replaces the permissions of an account of NewUsers.
func (d *Drupal) Permit(who Identity, permissions ...string) {
	d.ChangePeople(func(site *fixtures.Site) {
		for i := range site.Roles {
			if site.Roles[i].ID == string(who) {
				site.Roles[i].Permissions = permissions
			}
		}
	})
}

// ChangePeople changes the site's roles and users. Unless the check also replaces the site, the change stays when it ends:
// a bridge may have cached the new accounts, and no other check uses them.
func (d *Drupal) ChangePeople(alter func(*fixtures.Site)) {
	site := d.Site().ClonePeople()
	alter(site)
	d.Mock.SetSite(site)
}

// Discoveries lists the discovery requests in the journal.
func (d *Drupal) Discoveries() []mockdrupal.Entry {
	return slices.DeleteFunc(d.Journal(), func(e mockdrupal.Entry) bool { return !strings.HasPrefix(e.Path, "/jsonrpc/methods") })
}

// Permissions are those that an account of the site holds through its roles.
func (t *T) Permissions(who Identity) []string {
	site := t.Drupal.Site()
	user := UserOf(site, who)
	var held []string
	for _, role := range site.Roles {
		for _, p := range role.Permissions {
			if site.Holds(user, p) && !slices.Contains(held, p) {
				held = append(held, p)
			}
		}
	}
	return held
}
