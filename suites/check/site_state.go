package check

import (
	"reflect"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/reports"
)

// siteNow is the mock site as it is served; nil without a mock.
func (t *T) siteNow() *fixtures.Site {
	if t.Drupal == nil {
		return nil
	}
	return t.Drupal.Site()
}

// noteSite notes in an exchange what of the site was not as before the check: whether the check had changed it, and the
// permissions of the caller if the check created that account.
func (t *T) noteSite(e *reports.Exchange, who Identity, then *fixtures.Site) {
	if then == nil || t.before == nil {
		return
	}
	e.SiteChanged = !sameSite(then, t.before)
	user, ok := then.User(string(who))
	if !ok {
		return
	}
	if t.Drupal.made(who) {
		e.Account = &reports.Account{Permissions: held(then, user)}
		return
	}
	earlier, ok := t.before.User(string(who))
	e.SiteChanged = e.SiteChanged || !ok || !reflect.DeepEqual(*user, *earlier) || !slices.Equal(held(then, user), held(t.before, earlier))
}

// sameSite reports whether two sites are the same apart from roles and users. Sites that share their lists compare fast.
func sameSite(one, other *fixtures.Site) bool {
	a, b := *one, *other
	a.Roles, a.Users, b.Roles, b.Users = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// held are the permissions that a user holds, sorted.
func held(site *fixtures.Site, user *fixtures.User) []string {
	all := []string{}
	for _, role := range site.Roles {
		for _, p := range role.Permissions {
			if site.Holds(user, p) && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	slices.Sort(all)
	return all
}
