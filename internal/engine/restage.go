package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// createdName is what the harness names the accounts that a check creates. A report can create no others.
var createdName = regexp.MustCompile(`^check(-[a-z0-9]{6}-)?[0-9]{1,9}$`)

// Restageable says whether the failing request of a clause can be sent to a bridge with a new mock behind it. The error, a
// *UsageError, says why not.
func Restageable(report *reports.Report, clause string) error {
	o := ReplayOptions{Report: report, Clause: clause}
	if created, ok := createdAccount(report, clause); ok {
		o.Accounts = append(o.Accounts, created)
	}
	old, err := failingRequest(o)
	if err != nil {
		return err
	}
	if why := needsMore(old); why != "" {
		return usage("%s: %s", clause, why)
	}
	return nil
}

// needsMore says what a request needs beside a bridge, a site and accounts; "": nothing.
func needsMore(e reports.Exchange) string {
	if e.SiteChanged {
		return "the check had changed the site before it sent the request"
	}
	if e.Request.Truncated > 0 {
		return fmt.Sprintf("the report holds the request without the last %d bytes of its body", e.Request.Truncated)
	}
	for _, up := range e.Drupal {
		if up.Fault != "" {
			return fmt.Sprintf("the check had a fault armed at the site (%s)", up.Fault)
		}
	}
	for name := range e.Request.Header {
		if strings.EqualFold(name, "Mcp-Session-Id") {
			return "the request belongs to an MCP session that the check opened"
		}
	}
	return ""
}

// createdAccount is the account of the failing request, if the check created it.
func createdAccount(report *reports.Report, clause string) (check.Identity, bool) {
	for _, r := range report.Results {
		if e, ok := r.Blamed(); ok && r.ID == clause && e.Account != nil && createdName.MatchString(e.Identity) {
			return check.Identity(e.Identity), true
		}
	}
	return "", false
}

// Restage creates the accounts that the check of a clause created, at another mock, where the request of an identity
// needs them. It returns the identities whose credentials Replay may use there.
func Restage(report *reports.Report, clause string, drupal *mockdrupal.Drupal) ([]check.Identity, error) {
	if err := Restageable(report, clause); err != nil {
		return nil, err
	}
	return Recreate(report, clause, drupal)
}

// Recreate is Restage for the accounts alone. Those that are there already stay as they are.
func Recreate(report *reports.Report, clause string, drupal *mockdrupal.Drupal) ([]check.Identity, error) {
	var created []check.Identity
	for _, r := range report.Results {
		if r.ID != clause {
			continue
		}
		for _, e := range r.Evidence {
			who := check.Identity(e.Identity)
			if e.Account == nil || !createdName.MatchString(e.Identity) || slices.Contains(created, who) {
				continue
			}
			if _, there := drupal.Site().User(e.Identity); there {
				created = append(created, who)
				continue
			}
			if err := drupal.Update(func(site *fixtures.Site) error { return addAccount(site, e) }); err != nil {
				return nil, fmt.Errorf("create the account %s: %w", who, err)
			}
			created = append(created, who)
		}
	}
	return created, nil
}

// addAccount adds the account of an exchange, with a role of its own that holds its permissions.
func addAccount(site *fixtures.Site, e reports.Exchange) error {
	uid := 0
	for _, u := range site.Users {
		uid = max(uid, u.UID)
	}
	site.Roles = append(site.Roles, fixtures.Role{ID: e.Identity, Permissions: e.Account.Permissions})
	site.Users = append(site.Users, fixtures.User{UID: uid + 1, Name: e.Identity, Password: e.Identity + "-pass", Roles: []string{e.Identity},
		Tokens: []fixtures.Token{{Value: e.Identity + "-token"}}})
	return nil
}
