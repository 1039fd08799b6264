package check

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal"
)

// excuse is why something else than the bridge may be to blame.
type excuse struct {
	why  string // "": nothing else is
	site bool   // the site fails
}

// Excuse notes that something else than the bridge may be why the running check does not pass. What fails in such a check
// says nothing of the bridge. The first excuse stays.
func (t *T) Excuse(why string) { t.noteExcuse(excuse{why, false}) }

// excuseBySite is Excuse where the site fails.
func (t *T) excuseBySite(why string) { t.noteExcuse(excuse{why, true}) }

func (t *T) noteExcuse(e excuse) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if t.excuse.why == "" {
		t.excuse = e
	}
}

// Excused is why the bridge is not to blame for what the check found, and whether its site fails; "": nothing else is.
func (t *T) Excused() (why string, site bool) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.Redact.Text(t.excuse.why), t.excuse.site
}

// Failing reports whether a status is that of a site, or of what stands before it, that cannot serve.
func Failing(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// SiteFailure says how the site behind the bridge failed by itself since a position of its journal: it said that it cannot
// serve, or took longer than the limit. It is "" where it did neither, where a fault is armed, and where nobody saw it.
func (t *T) SiteFailure(since int64, limit time.Duration) string {
	u := t.Upstream
	if u == nil || u.Faulty() {
		return ""
	}
	for _, e := range u.Recorder.Journal().Entries(since) {
		if Failing(e.Status) {
			return fmt.Sprintf("the site behind the bridge responds %d to %s %s", e.Status, e.HTTPMethod, e.Path)
		}
		took := time.Since(e.Start)
		if !e.End.IsZero() {
			took = e.End.Sub(e.Start)
		}
		tooLong := took >= limit*9/10                    // the bridge began to wait before the request reached the site
		if tooLong && t.Drupal != nil && e.Fault == "" { // a mock is never slow by itself
			if t.lagSince(e.Start) == 0 {
				continue
			}
			t.excuseOverload(fmt.Sprintf("the mock took %s for %s %s", Rounded(took), e.HTTPMethod, e.Path))
			return ""
		}
		if tooLong {
			return fmt.Sprintf("the site behind the bridge is slow: %s for %s %s, and the bridge waits %v", Rounded(took), e.HTTPMethod, e.Path, limit)
		}
	}
	return ""
}

// siteTime is how long the site worked since a position of its journal; requests at the same time count once.
func (u *SiteSide) siteTime(since int64) time.Duration {
	if u == nil {
		return 0
	}
	var worked time.Duration
	var until time.Time
	entries := u.Recorder.Journal().Entries(since)
	slices.SortFunc(entries, func(x, y mockdrupal.Entry) int { return x.Start.Compare(y.Start) })
	for _, e := range entries {
		start := e.Start
		if start.Before(until) {
			start = until
		}
		if e.End.After(start) {
			worked += e.End.Sub(start)
			until = e.End
		}
	}
	return worked
}

// blameSite excuses the check where the site failed by itself while the request was under way.
func (c Client) blameSite(a *Response, since int64) {
	if a.Err == nil && a.Status != http.StatusInternalServerError && !Failing(a.Status) {
		return
	}
	limit := c.T.UpstreamTimeout
	if limit == 0 {
		limit = min(c.T.Timeout/2, unknownTimeout)
	}
	if why := c.T.SiteFailure(since, limit); why != "" {
		c.T.excuseBySite(why)
	}
	if a.Err == ErrTimeout || a.Status == http.StatusGatewayTimeout {
		c.T.ExcuseLag()
	}
}

// unknownTimeout is how long a site may take where nobody knows how long the bridge waits for it.
const unknownTimeout = 5 * time.Second

// Rounded is a duration as people say it.
func Rounded(d time.Duration) string {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
