package mcp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/keys"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// callerNamed is the anonymous caller at an address, or the bearer of a token from there.
func callerNamed(t testing.TB, token, address string) caller.Caller {
	t.Helper()
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return must.Get(caller.Callers{Schemes: []caller.Scheme{caller.Bearer}}.From(&http.Request{Header: h, RemoteAddr: address + ":1"}))(t)
}

// open opens a session and, where it is to be used, uses it.
func open(t testing.TB, s *Sessions, who caller.Caller, now time.Time, used bool) (*session, error) {
	t.Helper()
	opened, err := s.open(November2025, who, now)
	if err == nil && used {
		found, _ := s.find(opened.id, who, now, time.Hour)
		must.Assert(t, found != nil, "a session that was just opened is gone")
	}
	return opened, err
}

// Who opens sessions without end ends its own that it does not use, and then gets no more.
func TestAFloodOfSessionsEndsItsOwn(t *testing.T) {
	now := time.Unix(0, 0)
	for name, flooder := range map[string]caller.Caller{"anonymous": callerNamed(t, "", "192.0.2.1"), "with a token": callerNamed(t, "flood", "192.0.2.1")} {
		s := NewSessions()
		var kept []*session
		for _, who := range []caller.Caller{callerNamed(t, "ann", "192.0.2.1"), callerNamed(t, "", "192.0.2.2"), callerNamed(t, "", "192.0.2.1"), callerNamed(t, "flood", "192.0.2.9")} {
			sess := must.Get(open(t, s, who, now, true))(t)
			kept = append(kept, sess)
		}
		for range 2 * maxOfCaller {
			_, err := open(t, s, flooder, now, false)
			must.Assert(t, err == nil, "%s: %v", name, err)
		}
		for i, sess := range kept {
			must.Expect(t, sess.ctx.Err() == nil && s.byID[sess.id] != nil, "%s: session %d, which is in use, has ended", name, i)
		}
		must.Expect(t, s.Len() <= maxOfCaller+len(kept), "%s: %d sessions", name, s.Len())
		var err error
		for range maxOfCaller + 1 {
			if _, err = open(t, s, flooder, now, true); err != nil {
				break
			}
		}
		must.Expect(t, fault.Is(err, fault.Overloaded) && fault.From(err).RetryAfter != 0,
			"%s: more sessions in use than one caller may have: %v", name, err)
		_, err = open(t, s, flooder, now.Add(inUse+time.Second), true)
		must.Expect(t, err == nil, "%s: when they went unused: %v", name, err)
	}
}

// Anonymous callers from everywhere together end no session of anybody who is known.
func TestAnonymousCallersEndNoSessionOfOthers(t *testing.T) {
	s, now := NewSessions(), time.Unix(0, 0)
	ann := callerNamed(t, "ann", "192.0.2.1")
	kept := must.Get(open(t, s, ann, now, false))(t)
	var refused error
	for i := range maxSessions + 1000 {
		if _, err := open(t, s, callerNamed(t, "", "10.0."+strconv.Itoa(i/250)+"."+strconv.Itoa(i%250)), now, i%2 == 0); err != nil {
			refused = err
		}
	}
	must.Expect(t, kept.ctx.Err() == nil && s.anonymous <= maxAnonymous && s.Len() <= maxAnonymous+1,
		"%d sessions, %d of anonymous callers; the other: %v", s.Len(), s.anonymous, kept.ctx.Err())
	must.Expect(t, refused == nil || fault.Is(refused, fault.Overloaded), "%v", refused)
	_, err := open(t, s, callerNamed(t, "bob", "192.0.2.1"), now, true)
	must.Expect(t, err == nil, "a known caller: %v", err)
}

// What the store counts is what it holds, whatever was opened and closed; what nobody finds any more has ended.
func TestTheStoreOfSessionsAgreesWithItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, now := NewSessions(), time.Unix(0, 0)
		var all []*session
		for range rapid.IntRange(1, 400).Draw(rt, "steps") {
			who := callerNamed(t, rapid.SampledFrom([]string{"", "", "ann"}).Draw(rt, "token"), "192.0.2."+strconv.Itoa(rapid.IntRange(1, 2).Draw(rt, "address")))
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
			must.Expect(rt, (s.byID[sess.id] == nil) == (sess.ctx.Err() != nil),
				"a session that nobody finds has not ended, or the other way round")
		}
		must.Expect(rt, held == s.Len() && anonymous == s.anonymous,
			"%d sessions, %d held; %d anonymous, %d held", s.Len(), held, s.anonymous, anonymous)
	})
}

const (
	oldKey = "0123456789abcdef0123456789abcdef"
	newKey = "another key of more than 32 characters"
)

// replica is a store of sessions that are sealed with keys.
func replica(t testing.TB, secrets ...string) *Sessions {
	t.Helper()
	ring := must.Get(keys.New(secrets, "test"))(t)
	s := NewSessions()
	s.Seal(ring, time.Hour)
	return s
}

// A replica goes on with a sealed session of another as long as they have a key in common, the caller is the same and the
// session's time is not over.
func TestSealedSessionsGoOnElsewhere(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ann, bob := callerNamed(t, "ann", "192.0.2.1"), callerNamed(t, "bob", "192.0.2.1")
	first := replica(t, oldKey)
	opened := must.Get(open(t, first, ann, now, true))(t)
	another, err := open(t, first, ann, now, false)
	must.Assert(t, err == nil && another.id != opened.id, "two sessions of one caller have the id %q: %v", opened.id, err)
	changed := "A" + opened.id[1:]
	if opened.id[0] == 'A' {
		changed = "B" + opened.id[1:]
	}
	for name, c := range map[string]struct {
		keys []string
		id   string
		who  caller.Caller
		at   time.Time
		want bool
	}{
		"the same key":       {[]string{oldKey}, opened.id, ann, now, true},
		"from elsewhere":     {[]string{oldKey}, opened.id, callerNamed(t, "ann", "192.0.2.7"), now, true},
		"the key is the old": {[]string{newKey, oldKey}, opened.id, ann, now, true},
		"near its end":       {[]string{oldKey}, opened.id, ann, now.Add(time.Hour - time.Second), true},
		"another caller":     {[]string{oldKey}, opened.id, bob, now, false},
		"nobody":             {[]string{oldKey}, opened.id, callerNamed(t, "", "192.0.2.1"), now, false},
		"another key":        {[]string{newKey}, opened.id, ann, now, false},
		"no key":             {nil, opened.id, ann, now, false},
		"after its end":      {[]string{oldKey}, opened.id, ann, now.Add(time.Hour), false},
		"changed":            {[]string{oldKey}, changed, ann, now, false},
		"cut":                {[]string{oldKey}, opened.id[1:], ann, now, false},
	} {
		found, err := replica(t, c.keys...).find(c.id, c.who, c.at, time.Minute)
		must.Expect(t, err == nil && (found != nil) == c.want, "%s: found %v (%v), want %v", name, found != nil, err, c.want)
		if found != nil && found.revision != November2025 {
			t.Errorf("%s: the revision is %s", name, found.revision)
		}
	}
}

// A sealed session that its client ended stays ended where that is known, and one that was forgotten goes on.
func TestSealedSessionsEnd(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ann := callerNamed(t, "ann", "192.0.2.1")
	s := replica(t, oldKey)
	opened := must.Get(open(t, s, ann, now, true))(t)
	s.mu.Lock()
	s.remove(opened) // as when others need the place
	s.mu.Unlock()
	again, err := s.find(opened.id, ann, now, time.Minute)
	must.Assert(t, err == nil && again != nil, "a session that was forgotten is gone: %v", err)
	s.close(again)
	found, _ := s.find(opened.id, ann, now, time.Minute)
	must.Expect(t, found == nil, "a session that was ended goes on")
}

// Where all places are in use, a session of another replica gets an error that says when to come again.
func TestSealedSessionsHaveBounds(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	who := callerNamed(t, "", "192.0.2.1")
	elsewhere := must.Get(open(t, replica(t, oldKey), who, now, true))(t)
	s := replica(t, oldKey)
	for range maxOfAddress {
		must.Get(open(t, s, who, now, true))(t)
	}
	_, err := s.find(elsewhere.id, who, now, time.Minute)
	must.Expect(t, fault.Is(err, fault.Overloaded), "a session too many: %v", err)
}

// A stream gives the same lines however it is buffered; those that are too long are left out, and nothing of them is kept.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("{}\n"+strings.Repeat("x", 40)+"\n\n{}"), 20)
	f.Add([]byte(strings.Repeat("y", 100)), 1000)
	f.Fuzz(func(t *testing.T, stream []byte, longest int) {
		longest = min(max(longest, 0), 1000)
		r := bufio.NewReaderSize(bytes.NewReader(stream), 16)
		for part := range bytes.SplitAfterSeq(stream, []byte("\n")) {
			line, tooLong, err := readLine(r, longest)
			must.Assert(t, tooLong == (len(part) > longest) && (!tooLong || line == nil) && (tooLong || bytes.Equal(line, part)),
				"%q: read %q, too long: %t", part, line, tooLong)
			last := !bytes.HasSuffix(part, []byte("\n"))
			must.Assert(t, last == errors.Is(err, io.EOF), "%q: %v", part, err)
		}
	})
}

// Every text can be sent in a header in base64, and is read as it was.
func FuzzHeaderValue(f *testing.F) {
	f.Add("content.echo")
	f.Add("=?base64?eA==?=")
	f.Add("=?base64??=?=")
	f.Fuzz(func(t *testing.T, text string) {
		decoded(text)
		got, ok := decoded("=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?=")
		must.Expect(t, ok && got == text, "%q is read as %q", text, got)
	})
}
