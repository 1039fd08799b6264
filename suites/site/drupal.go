package site

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Controlled is a site whose methods and accounts can be changed: a mock, or a real site behind its control plane.
type Controlled interface {
	Site() *fixtures.Site   // as it is now: read only
	SetSite(*fixtures.Site) // as one step; where that is impossible the running check is not testable
	OpenSession(account string) (cookie string)
	EndSessions(account string)
}

// Drupal is a site whose data are known and can be changed, with the way to it: most often the mock. Arm is undone when the
// check ends; a check that changes the site's methods undoes it.
type Drupal struct {
	*Upstream
	Mock     Controlled
	Prefix   string // of the numbers of accounts that checks create: a bridge that is up may remember those of another run
	users    atomic.Int64
	sessions sync.Map // client.Identity → cookie
}

// Session is the cookie of an account's session, one for the whole run.
func (d *Drupal) Session(who client.Identity) string {
	if cookie, open := d.sessions.Load(who); open {
		return cookie.(string)
	}
	cookie, _ := d.sessions.LoadOrStore(who, d.Mock.OpenSession(string(who)))
	return cookie.(string)
}

// LetResultsBreakOutput makes the site send results that break the output of their method, until the check ends. A Drupal refuses
// them itself where one call is sent alone, so that the check is not testable before one.
func (d *Drupal) LetResultsBreakOutput() {
	site, can := d.Mock.(interface {
		SetQuirk(name string, on bool) error
	})
	if !can {
		panic(NotTestable("the site refuses results that break the output of their method"))
	}
	if err := site.SetQuirk(quirk.LenientOutput, true); err != nil {
		panic(NotTestable(fmt.Sprintf("the site refuses results that break the output of their method, and %v", err)))
	}
	d.cleanup(func(context.Context) { _ = site.SetQuirk(quirk.LenientOutput, false) }) // the site is gone otherwise
}

// Site is the site as it is served now.
func (d *Drupal) Site() *fixtures.Site { return d.Mock.Site() }

// NewUser creates an account that the bridge does not know yet, with the given permissions, for the running check.
func (d *Drupal) NewUser(permissions ...string) client.Identity {
	return d.NewUsers(1, permissions...)[0]
}

// NewUsers creates n such accounts. A run that could not put the site back has left some there.
func (d *Drupal) NewUsers(n int, permissions ...string) []client.Identity {
	var created []client.Identity
	for site := d.Site(); len(created) < n; {
		name := fmt.Sprintf("check%s%d", d.Prefix, d.users.Add(1))
		if _, there := site.User(name); !there {
			created = append(created, client.Identity(name))
		}
	}
	d.create(created, permissions)
	return created
}

// Share lets all later checks see what an account of NewUsers does: it is not the running check's alone.
func (d *Drupal) Share(who client.Identity) { d.accounts.Store(string(who), ofAllChecks) }

// Forgets reports whether the site is behind its control plane, and may lock whom it refuses: a Drupal locks an account after five failed
// logins and an address after fifty, whatever the bridge does. A mock of the run's own counts none.
func (d *Drupal) Forgets() bool {
	_, remote := d.Mock.(*Remote)
	return remote
}

// ForgetFailures makes a site that Forgets forget failed logins.
func (d *Drupal) ForgetFailures() {
	_ = d.Mock.(*Remote).client.SetFlood(context.Background(), false) // the next change says that the control plane is gone
}

// NewUserNamed creates an account that every run calls the same, unless it is there.
func (d *Drupal) NewUserNamed(name string, permissions ...string) client.Identity {
	who := client.Identity(name)
	if _, there := d.Site().User(name); !there {
		d.create([]client.Identity{who}, permissions)
		d.Share(who)
	}
	return who
}

func (d *Drupal) create(accounts []client.Identity, permissions []string) {
	d.ChangePeople(func(site *fixtures.Site) {
		uid := 0
		for _, u := range site.Users {
			uid = max(uid, u.UID)
		}
		for i, who := range accounts {
			name := string(who)
			d.accounts.Store(name, d.check)
			site.Roles = append(site.Roles, fixtures.Role{ID: roleOf(who), Permissions: permissions})
			site.Users = append(site.Users, fixtures.User{UID: uid + 1 + i, Name: name, Password: name + "-pass", Roles: []string{roleOf(who)},
				Tokens: []fixtures.Token{{Value: TokenHead + plain(name) + "-token"}}})
		}
	})
}

// TokenHead begins the tokens of all accounts of NewUsers. Those of many sites are signed documents, which begin alike.
const TokenHead = "with-the-same-header-the-same-issuer-and-the-same-audience-as-the-tokens-of-all-other-accounts-of-this-site-"

// notOfTokens are the characters that no bearer token has.
var notOfTokens = regexp.MustCompile(`[^A-Za-z0-9._~+/-]`)

// roleOf is the role of an account of NewUsers. Its configuration has its name, in which a Drupal refuses an apostrophe, and which is ASCII.
func roleOf(who client.Identity) string { return plain(string(who)) }

// plain is a name of an account in the characters that a bearer token has.
func plain(name string) string { return notOfTokens.ReplaceAllString(name, "_") }

// Made reports whether an account is one of NewUsers.
func (d *Drupal) Made(who client.Identity) bool {
	_, ok := d.accounts.Load(string(who))
	return ok
}

// Permit replaces the permissions of an account of NewUsers.
func (d *Drupal) Permit(who client.Identity, permissions ...string) {
	d.ChangePeople(func(site *fixtures.Site) {
		for i := range site.Roles {
			if site.Roles[i].ID == roleOf(who) {
				site.Roles[i].Permissions = permissions
			}
		}
	})
}

// ChangePeople changes the site's roles and users. Unless the check also replaces the site, the change stays when it ends:
// a bridge may have cached the new accounts, and no other check uses them.
func (d *Drupal) ChangePeople(alter func(*fixtures.Site)) {
	d.Use()
	site := d.Site().ClonePeople()
	alter(site)
	d.Mock.SetSite(site)
}

// Discoveries lists the discovery requests in the journal.
func (d *Drupal) Discoveries() []mockdrupal.Entry {
	return slices.DeleteFunc(d.Journal(), func(e mockdrupal.Entry) bool { return e.Route != route.Methods && e.Route != route.Method })
}

// NumberAccountsFrom sets the number that the name of the next account of NewUsers has. The names are those of the check then,
// whatever was tested before.
func (d *Drupal) NumberAccountsFrom(n int64) {
	if d != nil {
		d.users.Store(n)
	}
}

// Snapshot is the site as it is served now; nil without one.
func (d *Drupal) Snapshot() *fixtures.Site {
	if d == nil {
		return nil
	}
	return d.Site()
}

// Permissions are those that a user of a site holds, in the order of the roles.
func Permissions(site *fixtures.Site, user *fixtures.User) []string {
	held := []string{}
	for _, role := range site.Roles {
		for _, p := range role.Permissions {
			if site.Holds(user, p) && !slices.Contains(held, p) {
				held = append(held, p)
			}
		}
	}
	return held
}

// Name is the site's name, for messages.
func (d *Drupal) Name() string { return d.Site().Name }

// Methods are those of the site as it is served now.
func (d *Drupal) Methods() []fixtures.Method { return d.Site().Methods }

// MayUse goes by the permissions of the caller's account.
func (d *Drupal) MayUse(who client.Identity) bool {
	site := d.Site()
	user, ok := site.User(string(who))
	return ok && site.Holds(user, fixtures.UseJSONRPC)
}

// MayRun goes by the permissions of the caller's account.
func (d *Drupal) MayRun(who client.Identity, m *fixtures.Method) bool {
	site := d.Site()
	user, ok := site.User(string(who))
	return ok && site.Holds(user, fixtures.UseJSONRPC) && site.MayRun(user, m)
}

// Unknown is "": a mock knows its accounts.
func (*Drupal) Unknown(client.Identity) string { return "" }

// Marks is true: a mock knows its methods, whatever it publishes of them.
func (*Drupal) Marks() bool { return true }
