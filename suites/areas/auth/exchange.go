package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// noPassthrough looks at every request that reaches the site for callers with new tokens.
func noPassthrough(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	as := d.authority()
	t.ExpireCaches() // so that discovery is seen, too
	for _, who := range []check.Identity{check.Agent, check.Agent2} {
		d.Row(who, "", "a token that is exchanged", func() {
			token := as.Issue(string(who), d.Resource())
			d.Mark()
			s := d.With(who, check.Credentials{Token: token}).MCP(ctx, d.right.Revision)
			r := d.use(ctx, s)
			d.Expect(r).To(d.beServed())
			s.ListTools(ctx, "")
			d.Expect(r).To(match.Conform("no token of the caller in a request to the site", func(*check.Response) string { return passedOn(d.T, token) }))
			if d.Drupal != nil {
				d.Expect(r).To(match.Conform("a run as "+who.String(), func(*check.Response) string { return ranAs(d.T, d.method, who) }))
			}
		})
	}
	t.Cleanup(func(context.Context) { as.Misbehave(authserver.None) })
	for how, why := range check.InOrder(map[authserver.Misbehaviour]string{
		authserver.Down:       "the authorization server is down",
		authserver.NoExchange: "the authorization server refuses to exchange it",
	}) {
		as.Misbehave(how)
		d.Row(check.Agent, "", "a token that cannot be exchanged: "+why, func() {
			token := as.Issue(string(check.Agent), d.Resource())
			d.Mark()
			r := d.use(ctx, d.as(check.Credentials{Token: token}))
			d.Expect(r).To(match.BeRefusedWith(http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, 500, 502, 503, 504), why)
			d.Expect(r).To(match.Conform("no token of the caller in a request to the site", func(*check.Response) string { return passedOn(d.T, token) }))
		})
	}
}

// passedOn says where a request to the site holds the token; "": nowhere. The journal has hashes in place of what it
// knows as credentials, and everything else as it was.
func passedOn(t *check.T, token string) string {
	for _, entry := range t.Upstream.Journal() {
		if where := holds(entry, token); where != "" {
			return fmt.Sprintf("the token in %s of %s %s", where, entry.HTTPMethod, entry.Path)
		}
	}
	return ""
}

func holds(entry mockdrupal.Entry, token string) string {
	within := func(text string) bool {
		return strings.Contains(text, token) || strings.Contains(text, journal.Hash(token))
	}
	for name, values := range check.InOrder(entry.Header) {
		if within(strings.Join(values, " ")) {
			return "the header " + name
		}
	}
	switch {
	case within(entry.RawQuery):
		return "the query"
	case within(string(entry.Body)):
		return "the body"
	}
	return ""
}
