package discovery

import (
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
)

// A caller who asks in ever new languages has the site asked for each, and takes places from others. After so many within
// this time the caller is given the site's own language.
const (
	languagesPerCaller = 16
	languagesFor       = time.Hour
)

// spoken is what each caller has asked in.
type spoken struct {
	callers *otter.Cache[caller.Identity, *callerLanguages]
}

type callerLanguages struct {
	mu   sync.Mutex
	tags []string
}

func newSpoken(callers int) (spoken, error) {
	c, err := otter.New(&otter.Options[caller.Identity, *callerLanguages]{
		MaximumSize: callers, ExpiryCalculator: otter.ExpiryWriting[caller.Identity, *callerLanguages](languagesFor),
	})
	return spoken{c}, err
}

// limit returns the caller as it is, or without a language where it has asked in too many. Anonymous callers are many
// people, and so are those who share a token of the bridge's own.
func (s spoken) limit(who caller.Caller) caller.Caller {
	tag := who.Language()
	if tag == "" || who.Anonymous() || who.Shared() {
		return who
	}
	owner := who.Owner()
	t, ok := s.callers.GetIfPresent(owner)
	if !ok {
		t, _ = s.callers.SetIfAbsent(owner, &callerLanguages{})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, have := range t.tags {
		if have == tag {
			return who
		}
	}
	if len(t.tags) < languagesPerCaller {
		t.tags = append(t.tags, tag)
		return who
	}
	return who.WithoutLanguage()
}
