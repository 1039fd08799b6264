package check

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// How much patience a run has with a bridge that does not respond.
const (
	maxSilent   = 3                      // time-outs in a row of one kind of request; further ones are not sent
	maxPatient  = 2                      // time-outs of a run that last as long as they may
	shorter     = 2 * time.Second        // lasts each of those after them, of a kind that has not responded since
	maxWasted   = 25 * time.Second       // that a run waits in vain before all kinds have the shorter time
	muchWasted  = 40 * time.Second       // that a run waits in vain before all kinds have the shortest time
	shortestYet = 500 * time.Millisecond // the shortest time
)

// patience bounds what requests without a response cost a run: at most maxSilent time-outs in a row for each kind of
// request, and of all kinds together muchWasted and short ones. A bridge that is slow, and responds, has more time: four
// times as long as its slowest response.
type patience struct {
	mu      sync.Mutex
	silent  map[string]int       // time-outs in a row, by kind
	last    map[string]*Response // that timed out, by kind
	total   int                  // time-outs
	wasted  time.Duration        // waited in vain; requests at the same time count once
	until   time.Time            // end of the last wait that is counted, in vain or not
	slowest time.Duration        // of the responses
	slow    map[string]*Slowness // by kind
	tooSlow map[string]string    // why no more of a kind are sent
}

// Slowness is what slow responses to a kind of request have cost a run.
type Slowness struct {
	Kind    string
	Waited  time.Duration // for responses that took a tenth of the time-out or more; those at the same time count once
	AtSite  time.Duration // of it, as far as the site is seen
	Slowest *Response
}

// Slowness is what the slow responses of the kind that is waited for longest have cost the run so far, and what all have.
func (p *Policy) Slowness() (worst Slowness, all time.Duration) {
	p.patience.mu.Lock()
	defer p.patience.mu.Unlock()
	for _, s := range p.patience.slow {
		all += s.Waited
		if s.Waited > worst.Waited {
			worst = *s
		}
	}
	return worst, all
}

// Carried says why what a check found may depend on the checks that this process tested before it; "": it does not, as far as
// the harness knows.
func (e *Environment) Carried() string {
	p := &e.Policy.patience
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.total > 0:
		return "the bridge did not respond in time"
	case len(p.tooSlow) > 0:
		return "the bridge is slow"
	case e.flaps.Load(), e.vain.Load() > 0:
		return "the site fails now and then"
	case !e.endless.IsZero():
		return "a list has no end"
	}
	return ""
}

// GiveUp sends no more requests of a kind: a check that needs one is not testable, and says why.
func (p *Policy) GiveUp(kind, why string) {
	p.patience.mu.Lock()
	defer p.patience.mu.Unlock()
	if p.patience.tooSlow == nil {
		p.patience.tooSlow = map[string]string{}
	}
	p.patience.tooSlow[kind] = why
	delete(p.patience.slow, kind)
}

// givenUp is why no more requests of a kind are sent; "": they are.
func (p *patience) givenUp(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tooSlow[kind]
}

// exhausted is the last response of a kind that is no longer sent; nil as long as it is.
func (p *patience) exhausted(kind string) *Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent[kind] < maxSilent {
		return nil
	}
	return p.last[kind]
}

// limit is the time that the next request of a kind has.
func (p *patience) limit(kind string, usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.wasted >= muchWasted:
		return min(usual, max(shortestYet, 4*p.slowest))
	case p.wasted >= maxWasted, p.total >= maxPatient && p.silent[kind] > 0:
		return min(usual, max(shorter, 4*p.slowest))
	}
	return usual
}

// note learns from a response, or from its absence. The site worked so long for it.
func (p *patience) note(kind string, a *Response, atSite time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := a.At.Add(a.Took)
	from := a.At
	if from.Before(p.until) {
		from = p.until
	}
	waited := max(0, end.Sub(from))
	if !errors.Is(a.Err, ErrTimeout) {
		delete(p.silent, kind)
		if a.Err == nil {
			p.slowest = max(p.slowest, a.Took)
		}
		if a.Took >= a.T.Timeout/10 {
			p.until = end
			p.noteSlow(strings.TrimSuffix(kind, furtherPages), a, waited, atSite) // pages are slow alike
		}
		return
	}
	if p.silent == nil {
		p.silent, p.last = map[string]int{}, map[string]*Response{}
	}
	p.silent[kind]++
	p.last[kind] = a
	p.total++
	p.wasted += waited
	p.until = end
}

func (p *patience) noteSlow(kind string, a *Response, waited, atSite time.Duration) {
	if p.slow == nil {
		p.slow = map[string]*Slowness{}
	}
	s := p.slow[kind]
	if s == nil {
		s = &Slowness{Kind: kind, Slowest: a}
		p.slow[kind] = s
	}
	s.Waited += waited
	s.AtSite += min(waited, atSite)
	if a.Took > s.Slowest.Took {
		s.Slowest = a
	}
}

// Patiently sends a request by the given function, within the time that it has, and fills in its response. The function gets
// the last request that the site got before. What was sent in vain maxSilent times in a row is not sent again: then the last
// of those is the response.
func (c Client) Patiently(a *Response, send func(limit time.Duration, since int64)) *Response {
	p, kind, faulty := &c.T.patience, kindOf(a), c.T.Upstream.Faulty()
	if last := p.exhausted(kind); last != nil {
		return c.unsent(last)
	}
	if why := p.givenUp(strings.TrimSuffix(kind, furtherPages)); why != "" {
		c.T.unsent.Add(1)
		c.T.Excuse(why)
		a.Err = errors.New("not sent: " + why)
		return a
	}
	limit := c.T.Timeout
	if !faulty { // else the bridge may wait for the site
		limit = p.limit(kind, limit)
	}
	c.T.WaitForRate()
	since := c.T.Upstream.Last()
	a.At = time.Now()
	send(limit, since)
	if a.Took == 0 {
		a.Took = time.Since(a.At)
	}
	if a.Err != nil || a.Status == http.StatusTooManyRequests || a.Status >= http.StatusInternalServerError {
		c.T.unserved.Store(true)
	}
	if !faulty {
		atSite := time.Duration(0)
		if a.Took >= c.T.Timeout/10 {
			atSite = c.T.Upstream.siteTime(since)
		}
		p.note(kind, a, atSite)
		c.blameSite(a, since)
	}
	return a
}

var rpcMethod = regexp.MustCompile(`"method":\s*"([^"]*)"`)

// kindOf names the kind of a request: what a bridge treats alike. The first page of a list and the others are two kinds.
func kindOf(a *Response) string {
	kind := a.Method + " " + a.Path
	further := false
	switch a.Path {
	case DescribePath, InvokePath:
		if verb := map[string]string{DescribePath: http.MethodGet, InvokePath: http.MethodPost}[a.Path]; a.Method != verb {
			kind = "another verb than " + verb + " " + a.Path
		}
	case ListPath:
		query, _ := url.ParseQuery(a.RawQuery)
		further = query.Has("cursor")
	case MCPPath:
		if method := rpcMethod.FindStringSubmatch(a.Shown); method != nil {
			kind += " " + method[1]
		}
		further = strings.Contains(kind, "tools/list") && strings.Contains(a.Shown, `"cursor":`)
	}
	if further {
		kind += furtherPages
	}
	return kind
}

const furtherPages = ", further pages"

// unsent is the response to a request that is not sent, because so many of its kind timed out: the last of those.
func (c Client) unsent(last *Response) *Response {
	a := *last
	a.T = c.T
	a.Err = fmt.Errorf("%w, as %d in a row before it: no more of this kind are sent", ErrTimeout, maxSilent)
	c.T.unsent.Add(1)
	c.T.Record(&a, c.T.Upstream.Last())
	return &a
}
