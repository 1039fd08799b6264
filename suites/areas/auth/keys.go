package auth

import (
	"context"
	"net/http"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// How long a bridge may take to notice new keys: libraries ask for keys again after 30 s at the earliest.
const (
	noticeTime = time.Minute
	noticeStep = time.Second
)

// within asks until done, while the time in which the bridge has to notice something passes on its clock.
func (d *door) within(ctx context.Context, limit time.Duration, done func() bool) bool {
	for passed := time.Duration(0); passed <= limit && ctx.Err() == nil; passed += noticeStep {
		if done() {
			return true
		}
		d.AdvanceClock(ctx, noticeStep)
	}
	return false
}

// accepts reports whether a token is accepted at present.
func (d *door) accepts(ctx context.Context, token string) bool {
	return d.served(d.use(ctx, d.own(ctx, check.Credentials{Token: token})))
}

// rotate makes the authorization server sign with a new key and waits until the bridge accepts it. A bridge that does not
// gets the old key back, for the checks that follow.
func (d *door) rotate(ctx context.Context, withdraw bool) (accepted bool) {
	as, old := d.authority(), d.Authority.Key()
	fresh := as.Rotate()
	if withdraw {
		as.Retire(old)
	}
	token := as.Issue(string(check.Agent), d.Resource())
	if d.within(ctx, noticeTime, func() bool { return d.accepts(ctx, token) }) {
		return true
	}
	as.Retire(fresh)
	as.Publish(old)
	return false
}

func newKey(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	before := d.authority().Issue(string(check.Agent), d.Resource())
	if !d.rotate(ctx, false) {
		t.Fail(check.Mismatch("a token that a new key has signed", "a result within "+noticeTime.String(), "refusals"))
	}
	d.Row(check.Agent, "", "a token of the key before, which is still published", func() {
		d.Expect(d.use(ctx, d.own(ctx, check.Credentials{Token: before}))).To(d.beServed())
	})
}

func removedKey(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	before := d.authority().Issue(string(check.Agent), d.Resource())
	d.accepts(ctx, before) // and the bridge may remember that
	if !d.rotate(ctx, true) {
		check.BlockedBy(check.Finding{Subject: "no token of a new key is accepted"}, "auth/new-key")
	}
	if d.within(ctx, noticeTime, func() bool { return !d.accepts(ctx, before) }) {
		open(ctx, t).refuse(ctx, "signed by a key that is published no longer", before)
		return
	}
	t.Fail(check.Mismatch("a token of a key that is published no longer", "401 within "+noticeTime.String(), "a result"))
}

// unknown is a token by a key that is not published, as after a rotation that the bridge has not seen.
func (d *door) unknown() string {
	return d.Authority.Sign(authserver.Token{Claims: d.good(), Key: d.stranger().Key()})
}

func serverDown(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	as := d.authority()
	t.Cleanup(func(context.Context) { as.Misbehave(authserver.None) })
	as.Misbehave(authserver.Down)
	d.servesMeanwhile(ctx)
	d.refuseUnknown(ctx)
	d.servesMeanwhile(ctx)
}

// servesMeanwhile tests that tokens of known keys are accepted: one that was used before, and new ones.
func (d *door) servesMeanwhile(ctx context.Context) {
	d.Row(check.Agent, "", "a token that was used before", func() {
		if r := d.use(ctx, d.right); !d.cannotAsk(r) {
			d.Expect(r).To(d.beServed())
		}
	})
	d.Row(check.Agent, "", "a new token of a known key", func() {
		token := d.Authority.Issue(string(check.Agent), d.Resource())
		r := d.use(ctx, d.own(ctx, check.Credentials{Token: token}))
		if d.Claims(check.TokenExchange) && r.Status >= http.StatusInternalServerError {
			return // the authorization server cannot exchange it
		}
		if !d.cannotAsk(r) {
			d.Expect(r).To(d.beServed())
		}
	})
}

// cannotAsk reports whether a response says that the authorization server cannot be asked about a token, by a bridge that
// has to.
func (d *door) cannotAsk(r *check.Response) bool {
	return d.Claims(check.TokenIntrospection) && r.Status >= http.StatusInternalServerError
}

// refuseUnknown tests that a token whose key cannot be had is refused, and nothing runs. It is not known to be wrong, so
// that a 5xx is right, too.
func (d *door) refuseUnknown(ctx context.Context) {
	d.Row(check.Agent, "", "a token of an unknown key", func() {
		d.Mark()
		r := d.use(ctx, d.as(check.Credentials{Token: d.unknown()}))
		d.Expect(r).To(match.BeRefusedWith(http.StatusUnauthorized, 500, 502, 503, 504))
		d.Expect(r).To(match.HaveRunNothing(d.Upstream))
	})
}

func serverHangs(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	as := d.authority()
	t.Cleanup(func(context.Context) { as.Misbehave(authserver.None) })
	as.Misbehave(authserver.Hangs)
	d.AdvanceClock(ctx, 6*time.Second) // else the bridge may not ask again so soon, and nothing would hang
	waiting := d.as(check.Credentials{Token: d.unknown()})
	d.Mark()
	asked := as.Requests("")
	var late *check.Response
	done := make(chan struct{})
	go func() {
		defer t.Recover()
		defer close(done)
		late = d.use(ctx, waiting)
	}()
	check.Within(ctx, 200*time.Millisecond, func() bool { return as.Requests("") > asked }) // a bridge may ask later, or never
	during := d.use(ctx, d.right)
	select {
	case <-done:
	case <-ctx.Done():
	}
	d.Row(check.Agent, "", "a right token meanwhile", func() {
		if !d.cannotAsk(during) {
			d.Expect(during).To(d.beServed())
		}
	})
	d.Row(check.Agent, "", "a token of an unknown key", func() {
		d.Expect(late).To(match.BeRefusedWith(http.StatusUnauthorized, 500, 502, 503, 504))
	})
}

// metadataIssuer gives the authorization server the metadata of another issuer, whose keys they name.
func metadataIssuer(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	as, other := d.authority(), d.stranger()
	t.Cleanup(func(context.Context) { as.Misbehave(authserver.None) })
	as.NameOtherIssuer(other)
	token := as.Sign(authserver.Token{Claims: d.good(), Key: other.Key()})
	for try := range 2 {
		if try > 0 {
			d.AdvanceClock(ctx, 6*time.Second) // so that a bridge that asks again now and then does so
		}
		d.Row(check.Agent, "", "a key of metadata that name another issuer", func() {
			d.Mark()
			r := d.use(ctx, d.as(check.Credentials{Token: token}))
			d.Expect(r).To(match.BeRefusedWith(http.StatusUnauthorized, 500, 502, 503, 504))
			d.Expect(r).To(match.HaveRunNothing(d.Upstream))
		})
	}
	d.stillServes(ctx)
}

// expiresInUse uses a token before and after it expires.
func expiresInUse(ctx context.Context, t *check.T) {
	d := open(ctx, t)
	as := d.authority()
	if t.Advance == nil {
		check.NotTestable("the run cannot move the bridge's clock, and differences of clocks may be minutes")
	}
	s := t.With(check.Agent, check.Credentials{Token: as.Issue(string(check.Agent), t.Resource(), map[string]any{"exp": as.Ago(-time.Minute)})}).MCP(ctx, d.right.Revision)
	if r := d.use(ctx, s); !d.served(r) {
		check.BlockedBy(check.Mismatch(r.Subject(), "a result, with a token that expires in a minute", r.RPCOutcome()), "auth/right-token")
	}
	t.Advance(wayOff)
	d.Row(check.Agent, "", "in use, and expired since nine minutes", func() {
		d.Mark()
		r := d.use(ctx, s)
		d.Expect(r).To(match.HaveStatus(http.StatusUnauthorized))
		d.Expect(r).To(match.HaveRunNothing(d.Upstream))
	})
	d.stillServes(ctx)
}
