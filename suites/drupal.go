package suites

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// Recorder keeps a journal of what reaches a site, and makes the site misbehave: the mock is one itself, and so is a
// recording proxy before a real one.
type Recorder interface {
	Journal() *mockdrupal.Journal
	Arm(mockdrupal.Fault) (disarm func(), err error)
}

// Upstream is the wire between bridge and site as the checks see it. A nil *Upstream stands for a black-box run and has
// seen nothing.
type Upstream struct {
	recorder Recorder
	since    int64 // journal position at which the running check began
}

// Mark forgets what the journal holds so far: Journal, Calls and Runs tell only of what comes after.
func (u *Upstream) Mark() { u.since = u.last() }

// Journal lists the requests that reached the site since the check began or the last Mark.
func (u *Upstream) Journal() []mockdrupal.Entry { return u.recorder.Journal().Entries(u.since) }

// Calls lists the JSON-RPC calls in the journal, of the given methods or of all.
func (u *Upstream) Calls(methods ...string) []mockdrupal.Call {
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
func (u *Upstream) Runs(methods ...string) []mockdrupal.Call {
	return slices.DeleteFunc(u.Calls(methods...), func(c mockdrupal.Call) bool { return !c.Ran })
}

// Arm makes the site misbehave for the rest of the running check, or until disarm is called.
func (u *Upstream) Arm(fault mockdrupal.Fault) (disarm func()) {
	disarm, err := u.TryArm(fault)
	if err != nil {
		panic(fmt.Sprintf("a check arms an impossible fault: %v", err))
	}
	return disarm
}

// TryArm is Arm for faults that not every machine can show; the error says why this one cannot.
func (u *Upstream) TryArm(fault mockdrupal.Fault) (disarm func(), err error) {
	if disarm, err = u.recorder.Arm(fault); err == nil {
		Cleanup(func(context.Context) { disarm() })
	}
	return disarm, err
}

func (u *Upstream) last() int64 {
	if u == nil {
		return 0
	}
	return u.recorder.Journal().Last()
}

// Drupal is a wire with the mock site at its end: the site's data are known and can be changed. Whatever a check changes
// through it is undone when the check ends.
type Drupal struct {
	*Upstream
	mock     *mockdrupal.Drupal
	users    atomic.Int64
	accounts sync.Map // Identity → true: those of NewUsers
	sessions sync.Map // Identity → cookie
}

// session is the cookie of an account's session, one for the whole run.
func (d *Drupal) session(who Identity) string {
	if cookie, open := d.sessions.Load(who); open {
		return cookie.(string)
	}
	cookie, _ := d.sessions.LoadOrStore(who, d.mock.OpenSession(string(who)))
	return cookie.(string)
}

// Site is the site as it is served now.
func (d *Drupal) Site() *fixtures.Site { return d.mock.Site() }

// NewUser creates an account that no bridge has seen yet, with the given permissions, for the running check.
func (d *Drupal) NewUser(permissions ...string) Identity { return d.NewUsers(1, permissions...)[0] }

// NewUsers creates n such accounts.
func (d *Drupal) NewUsers(n int, permissions ...string) []Identity {
	created := make([]Identity, n)
	d.changePeople(func(site *fixtures.Site) {
		uid := 0
		for _, u := range site.Users {
			uid = max(uid, u.UID)
		}
		for i := range created {
			name := fmt.Sprintf("check%d", d.users.Add(1))
			created[i] = Identity(name)
			d.accounts.Store(created[i], true)
			site.Roles = append(site.Roles, fixtures.Role{ID: name, Permissions: permissions})
			site.Users = append(site.Users, fixtures.User{UID: uid + 1 + i, Name: name, Password: name + "-pass", Roles: []string{name},
				Tokens: []fixtures.Token{{Value: name + "-token"}}})
		}
	})
	return created
}

// made tells whether an account is one of NewUser.
func (d *Drupal) made(who Identity) bool {
	_, ok := d.accounts.Load(who)
	return ok
}

// Permit changes what an account of NewUser holds.
func (d *Drupal) Permit(who Identity, permissions ...string) {
	d.changePeople(func(site *fixtures.Site) {
		for i := range site.Roles {
			if site.Roles[i].ID == string(who) {
				site.Roles[i].Permissions = permissions
			}
		}
	})
}

// changePeople alters the site's roles and users under the bridge's feet. New accounts stay: bridges may remember them,
// and nobody else does.
func (d *Drupal) changePeople(alter func(*fixtures.Site)) {
	site := d.Site().ClonePeople()
	alter(site)
	d.mock.SetSite(site)
}

// changeBehaviours alters what the site's methods do, each as a whole.
func (d *Drupal) changeBehaviours(alter func(*fixtures.Site)) {
	site := *d.Site()
	site.Methods = slices.Clone(site.Methods)
	alter(&site)
	d.mock.SetSite(&site)
}
