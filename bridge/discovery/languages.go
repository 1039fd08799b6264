package discovery

import (
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/recent"
)

// A caller who asks in ever new languages has the site asked for each, and takes places from others. After so many within
// this time the caller is given the site's own language.
const (
	languagesPerCaller = 16
	languagesFor       = time.Hour
)

// spoken is what each caller has asked in.
type spoken struct {
	callers *recent.Cache[caller.Identity, *callerLanguages]
}

type callerLanguages struct {
	mu    sync.Mutex
	since time.Time
	tags  []string
}

func newSpoken(callers int) spoken {
	return spoken{recent.New[caller.Identity, *callerLanguages](callers, nil)}
}

// limit returns the caller as it is, or without a language where it has asked in too many. Anonymous callers are many
// people, and so are those who share a token of the bridge's own.
func (s spoken) limit(who caller.Caller) caller.Caller {
	tag := who.Language()
	if tag == "" || who.Anonymous() || who.Shared() {
		return who
	}
	now := time.Now()
	t := s.callers.GetOrMake(who.Owner(), func() *callerLanguages { return &callerLanguages{since: now} })
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.since) > languagesFor {
		t.since, t.tags = now, nil
	}
	if slices.Contains(t.tags, tag) {
		return who
	}
	if len(t.tags) < languagesPerCaller {
		t.tags = append(t.tags, tag)
		return who
	}
	return who.WithoutLanguage()
}
