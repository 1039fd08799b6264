package auth

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// wellKnown is the path of a resource's metadata, before the path of the resource.
const wellKnown = "/.well-known/oauth-protected-resource"

// metadataURLs are where the metadata of the MCP endpoint must be, and where clients look next.
func metadataURLs(t *check.T) (own, root string) {
	u, err := url.Parse(t.Resource())
	if err != nil {
		panic(err) // it was read when the run began
	}
	path := u.Path
	u.Path = wellKnown
	root = u.String()
	u.Path += path
	return u.String(), root
}

// get requests an address of the bridge's host without credentials.
func get(ctx context.Context, t *check.T, address string) *check.Response {
	return t.With(check.Anonymous, check.Credentials{}).Send(ctx, check.Request{Address: address})
}

// beMetadata matches the metadata document of the endpoint.
func beMetadata(t *check.T) types.GomegaMatcher {
	return match.Conform("200 with the metadata of "+t.Resource(), func(a *check.Response) string {
		issuer := ""
		if t.Authority != nil {
			issuer = t.Authority.URL
		}
		return match.ResourceMetadata(a, t.Resource(), issuer)
	})
}

func metadata(ctx context.Context, t *check.T) {
	own, _ := metadataURLs(t)
	t.Expect(get(ctx, t, own)).To(beMetadata(t))
}

func metadataRoot(ctx context.Context, t *check.T) {
	own, root := metadataURLs(t)
	there := get(ctx, t, own)
	if there.Status != http.StatusOK {
		check.BlockedBy(check.Mismatch(there.Subject(), "the metadata", there.Outcome()), "auth/metadata")
	}
	t.Expect(get(ctx, t, root)).To(match.Conform("the same document as at "+own+", or 404", func(a *check.Response) string {
		switch {
		case a.Status == http.StatusNotFound:
			return ""
		case a.Status != http.StatusOK || a.Object() == nil:
			return a.Outcome()
		case there.Object() != nil && !exact.Equal(there.Object(), a.Object()):
			return "another document: " + exact.Diff(there.Object(), a.Object())
		}
		return ""
	}))
}

// opens sends the request that opens a session, with credentials.
func opens(ctx context.Context, d *door, creds check.Credentials) *check.Response {
	s := &check.Session{Client: d.With(check.Anonymous, creds), Revision: d.right.Revision}
	method, params := s.Opening()
	return s.Call(ctx, method, params)
}

// refusedTokens are callers without a right token.
func refusedTokens(ctx context.Context, d *door) map[string]*check.Response {
	return map[string]*check.Response{
		"no credentials":       opens(ctx, d, check.Credentials{}),
		"a token that is none": opens(ctx, d, check.Credentials{Token: "bridgecheck-" + rand.Text()}),
		"HTTP Basic":           opens(ctx, d, check.Credentials{User: "bridgecheck", Password: rand.Text()}),
	}
}

// haveChallenge matches a response for whose challenge ok holds.
func haveChallenge(expected string, ok func(a *check.Response) bool) types.GomegaMatcher {
	return match.ConformHeader("WWW-Authenticate", expected, func(a *check.Response) string {
		if ok(a) {
			return ""
		}
		return a.Challenges()
	})
}

func challenged(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	for name, r := range check.InOrder(refusedTokens(ctx, d)) {
		d.Row(check.Anonymous, "", name, func() {
			d.Expect(r).To(haveChallenge("401 with a Bearer challenge", func(a *check.Response) bool {
				return a.Status == http.StatusUnauthorized && a.Bearer() != nil
			}), "with "+name)
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		d.Row(check.Anonymous, "", method+" without a token", func() {
			r := d.as(check.Credentials{}).Client.Send(ctx, d.manage(method))
			d.Expect(r).To(haveChallenge("a Bearer challenge, as to POST", func(a *check.Response) bool {
				return a.Status != http.StatusUnauthorized || a.Bearer() != nil // auth/every-request tests the status
			}))
		})
	}
	d.stillServes(ctx)
}

func challengeMetadata(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	earlier := t.As(check.Agent).MCP(ctx, check.MCP2025June).Opened.RPCResult()["protocolVersion"] == string(check.MCP2025June)
	for name, r := range check.InOrder(refusedTokens(ctx, d)) {
		d.Row(check.Anonymous, "", name, func() {
			address, named := r.Bearer()["resource_metadata"]
			if r.Status != http.StatusUnauthorized || r.Bearer() == nil || !named && !earlier {
				return // auth/challenge tests the first two; the later revisions leave the parameter to the server
			}
			d.Expect(r).To(haveChallenge("`resource_metadata` with the address of the metadata", func(*check.Response) bool {
				return match.IsAddress(address)
			}), "with "+name)
			if own, _ := metadataURLs(t); address == own {
				return // auth/metadata tests what is there
			}
			if !sameHost(address, t.Resource()) {
				check.NotTestable("the challenge names the metadata at " + address + ", which is not at the address under test")
			}
			d.Expect(get(ctx, t, address)).To(beMetadata(t), "where the challenge says")
		})
	}
}

func sameHost(one, other string) bool {
	a, errA := url.Parse(one)
	b, errB := url.Parse(other)
	return errA == nil && errB == nil && strings.EqualFold(a.Host, b.Host) && a.Scheme == b.Scheme
}

func challengeNoError(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	d.Expect(opens(ctx, d, check.Credentials{})).To(match.Conform("a challenge without an error code, as no token was sent", func(a *check.Response) string {
		if _, named := a.Bearer()["error"]; named {
			return a.Challenges()
		}
		return ""
	}))
}

func invalidToken(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	tokens := map[string]string{"no JSON Web Token": "bridgecheck-" + rand.Text()}
	if as := d.Authority; as != nil {
		tokens["an expired token"] = as.Issue(string(check.Agent), d.Resource(), map[string]any{"exp": as.Ago(wayOff)})
		tokens["a token for another resource"] = as.Issue(string(check.Agent), "https://other.example/mcp")
	}
	for name, token := range check.InOrder(tokens) {
		d.Row(check.Agent, "", name, func() {
			d.Expect(opens(ctx, d, check.Credentials{Token: token})).To(haveChallenge(`a challenge with error="invalid_token"`, func(a *check.Response) bool {
				return a.Status != http.StatusUnauthorized || a.Bearer()["error"] == "invalid_token"
			}), "with "+name)
		})
	}
	d.stillServes(ctx)
}
