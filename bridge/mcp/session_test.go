package mcp

import (
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// caller is the anonymous one at an address, or the bearer of a token from there.
func caller(t testing.TB, token, address string) upstream.Caller {
	t.Helper()
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	who, err := upstream.Callers{Schemes: []upstream.Scheme{upstream.Bearer}}.From(&http.Request{Header: h, RemoteAddr: address + ":1"})
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// open opens a session and, where it is to be used, uses it.
func open(t testing.TB, s *Sessions, who upstream.Caller, now time.Time, used bool) (*session, error) {
	t.Helper()
	opened, err := s.open(November2025, who, now)
	if err == nil && used {
		if _, ok := s.find(opened.id, who.Owner(), now, time.Hour); !ok {
			t.Fatal("a session that was just opened is gone")
		}
	}
	return opened, err
}

// Who opens sessions without end ends its own that it does not use, and then gets no more.
func TestAFloodOfSessionsEndsItsOwn(t *testing.T) {
	now := time.Unix(0, 0)
	for name, flooder := range map[string]upstream.Caller{"anonymous": caller(t, "", "192.0.2.1"), "with a token": caller(t, "flood", "192.0.2.1")} {
		s := NewSessions()
		var kept []*session
		for _, who := range []upstream.Caller{caller(t, "ann", "192.0.2.1"), caller(t, "", "192.0.2.2"), caller(t, "", "192.0.2.1"), caller(t, "flood", "192.0.2.9")} {
			sess, err := open(t, s, who, now, true)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, sess)
		}
		for range 2 * maxOfCaller {
			if _, err := open(t, s, flooder, now, false); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for i, sess := range kept {
			if sess.ctx.Err() != nil || s.byID[sess.id] == nil {
				t.Errorf("%s: session %d, which is in use, has ended", name, i)
			}
		}
		if s.Len() > maxOfCaller+len(kept) {
			t.Errorf("%s: %d sessions", name, s.Len())
		}
		var err error
		for range maxOfCaller + 1 {
			if _, err = open(t, s, flooder, now, true); err != nil {
				break
			}
		}
		if !fault.Is(err, fault.Overloaded) || fault.From(err).RetryAfter == 0 {
			t.Errorf("%s: more sessions in use than one caller may have: %v", name, err)
		}
		if _, err := open(t, s, flooder, now.Add(inUse+time.Second), true); err != nil {
			t.Errorf("%s: when they went unused: %v", name, err)
		}
	}
}

// Anonymous callers from everywhere together end no session of anybody who is known.
func TestAnonymousCallersEndNoSessionOfOthers(t *testing.T) {
	s, now := NewSessions(), time.Unix(0, 0)
	ann := caller(t, "ann", "192.0.2.1")
	kept, err := open(t, s, ann, now, false)
	if err != nil {
		t.Fatal(err)
	}
	var refused error
	for i := range maxSessions + 1000 {
		if _, err := open(t, s, caller(t, "", "10.0."+itoa(i/250)+"."+itoa(i%250)), now, i%2 == 0); err != nil {
			refused = err
		}
	}
	if kept.ctx.Err() != nil || s.anonymous > maxAnonymous || s.Len() > maxAnonymous+1 {
		t.Errorf("%d sessions, %d of anonymous callers; the other: %v", s.Len(), s.anonymous, kept.ctx.Err())
	}
	if refused != nil && !fault.Is(refused, fault.Overloaded) {
		t.Error(refused)
	}
	if _, err := open(t, s, caller(t, "bob", "192.0.2.1"), now, true); err != nil {
		t.Errorf("a known caller: %v", err)
	}
}

func itoa(i int) string { return string(appendInt(nil, int64(i))) }

// What the store counts is what it holds, whatever was opened and closed; what nobody finds any more has ended.
func TestTheStoreOfSessionsAgreesWithItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, now := NewSessions(), time.Unix(0, 0)
		var all []*session
		for range rapid.IntRange(1, 400).Draw(rt, "steps") {
			who := caller(t, rapid.SampledFrom([]string{"", "", "ann"}).Draw(rt, "token"), "192.0.2."+itoa(rapid.IntRange(1, 2).Draw(rt, "address")))
			if len(all) > 0 && rapid.IntRange(0, 4).Draw(rt, "close") == 0 {
				s.close(all[rapid.IntRange(0, len(all)-1).Draw(rt, "which")])
			} else if sess, err := open(t, s, who, now, rapid.Bool().Draw(rt, "used")); err == nil {
				all = append(all, sess)
			}
			now = now.Add(time.Minute)
		}
		held, anonymous := 0, 0
		for holder, own := range s.holders {
			if held += len(own); holder.network != "" {
				anonymous += len(own)
			}
		}
		for _, sess := range all {
			if (s.byID[sess.id] == nil) != (sess.ctx.Err() != nil) {
				rt.Error("a session that nobody finds has not ended, or the other way round")
			}
		}
		if held != s.Len() || anonymous != s.anonymous {
			rt.Errorf("%d sessions, %d held; %d anonymous, %d held", s.Len(), held, s.anonymous, anonymous)
		}
	})
}
