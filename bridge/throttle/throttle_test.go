package throttle

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

var wrong = fault.New(fault.AccessDenied, "no")

func attempt(credential byte, account, address string) Attempt {
	a := Attempt{Credential: [32]byte{credential}, Account: account}
	if address != "" {
		a.Address = netip.MustParseAddr(address)
	}
	return a
}

// fail makes an attempt that the site refuses, if it gets there.
func fail(t testing.TB, l *Limiter, a Attempt) error {
	t.Helper()
	trial, err := l.Try(t.Context(), a)
	if err == nil {
		trial.Refused(wrong)
	}
	return err
}

func TestRefusalsFillTheirWindow(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		spread func(i int) Attempt
		window time.Duration
	}{
		"an account": {Limits{Account: 3, Address: 100, Total: 100}, func(i int) Attempt { return attempt(byte(i), "ann", fmt.Sprintf("192.0.2.%d", i)) }, AccountWindow},
		"an address": {Limits{Account: 100, Address: 3, Total: 100}, func(i int) Attempt { return attempt(byte(i), fmt.Sprint(i), "192.0.2.1") }, AddressWindow},
		"an IPv6 network": {Limits{Account: 100, Address: 3, Total: 100}, func(i int) Attempt {
			return attempt(byte(i), fmt.Sprint(i), fmt.Sprintf("2001:db8::%d", i))
		}, AddressWindow},
		"all": {Limits{Account: 100, Address: 100, Total: 3}, func(i int) Attempt {
			return attempt(byte(i), fmt.Sprint(i), fmt.Sprintf("192.0.2.%d", i))
		}, AddressWindow},
	} {
		now := time.Unix(0, 0)
		l := New(c.limits, 1000, func() time.Time { return now })
		for i := range 3 {
			err := fail(t, l, c.spread(i))
			must.Assert(t, err == nil, "%s, %d: %v", name, i, err)
			now = now.Add(time.Minute)
		}
		err := fail(t, l, c.spread(3))
		if f := fault.From(err); !errors.Is(err, ErrThrottled) || f.Code != fault.RateLimited || f.RetryAfter != c.window-3*time.Minute {
			t.Errorf("%s: %v, wait %s", name, err, fault.From(err).RetryAfter)
		}
		// A credential that was refused before says nothing new about its address; of its account it would.
		if err := fail(t, l, c.spread(0)); (c.limits.Address == 3) != (err == nil) || err != nil && !errors.Is(err, wrong) {
			t.Errorf("%s: a credential that was refused before: %v", name, err)
		}
		now = now.Add(c.window)
		err = fail(t, l, c.spread(4))
		must.Expect(t, err == nil, "%s, after the window: %v", name, err)
	}
}

// A credential that was good passes whatever happens, until the site refuses it.
func TestAGoodCredentialPasses(t *testing.T) {
	l := New(Limits{Account: 2, Address: 2, Total: 2}, 1000, time.Now)
	trial := must.Get(l.Try(t.Context(), attempt(1, "ann", "192.0.2.1")))(t)
	trial.Accepted()
	for i := range 10 {
		_ = fail(t, l, attempt(byte(i+2), "ann", "192.0.2.1"))
	}
	trial = must.Get(l.Try(t.Context(), attempt(1, "ann", "192.0.2.1")))(t)
	trial.Refused(wrong)
	_, err := l.Try(t.Context(), attempt(1, "ann", "192.0.2.1"))
	must.Expect(t, errors.Is(err, wrong), "refused after all: %v", err)
}

func TestAWaitingAttemptEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Limits{Account: 1, Address: 100}, 1000, time.Now)
		trial := must.Get(l.Try(t.Context(), attempt(1, "ann", "")))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.Try(ctx, attempt(2, "ann", ""))
		must.Expect(t, errors.Is(err, context.DeadlineExceeded), "error = %v", err)
		trial.Abandoned()
		_, err = l.Try(t.Context(), attempt(2, "ann", ""))
		must.Expect(t, err == nil && l.waiting == 0, "after an attempt that brought no response: %v, %d wait", err, l.waiting)
	})
}

// Whatever comes, no window holds more refusals than its limit, and nothing stays that counts nothing.
func TestNoWindowOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		l := New(Limits{Account: 3, Address: 4, Total: 6}, 1000, func() time.Time { return now })
		accounts, all := map[string][]time.Time{}, []time.Time{}
		within := func(list []time.Time, window time.Duration) (n int) {
			for _, at := range list {
				if now.Sub(at) < window {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"ann", "bob", "cem"}).Draw(t, "account")
			a := Attempt{Credential: [32]byte{rapid.Byte().Draw(t, "credential")}, Account: name, Address: netip.AddrFrom4([4]byte{1, 1, 1, rapid.ByteRange(0, 3).Draw(t, "address")})}
			if trial, err := l.Try(context.Background(), a); err == nil {
				switch rapid.IntRange(0, 3).Draw(t, "outcome") {
				case 0:
					trial.Accepted()
				case 1:
					trial.Abandoned()
				default:
					trial.Refused(wrong)
					if trial.held != nil {
						accounts[name], all = append(accounts[name], now), append(all, now)
					}
				}
			}
			must.Assert(t, within(accounts[name], AccountWindow) <= 3 && within(all, AddressWindow) <= 6,
				"%d refusals of %s, %d in all", within(accounts[name], AccountWindow), name, within(all, AddressWindow))
			now = now.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second)
		}
		now = now.Add(2 * AccountWindow)
		if l.sweep(now); len(l.counters) > 0 || l.trying != 0 {
			t.Errorf("%d counters stay, %d attempts", len(l.counters), l.trying)
		}
	})
}
