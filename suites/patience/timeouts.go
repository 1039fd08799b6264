package patience

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/suites/client"
)

// What a bridge that does not respond may cost a run.
const (
	maxInARow  = 3                      // time-outs in a row of one kind of request; further ones are not sent
	maxFull    = 2                      // time-outs of a run that last as long as they may
	shorter    = 2 * time.Second        // lasts each of those after them, of a kind that has not responded since
	maxWasted  = 25 * time.Second       // that a run waits without a response before all kinds have the shorter time
	mostWasted = 40 * time.Second       // that a run waits without a response before all kinds have the shortest time
	shortest   = 500 * time.Millisecond // the shortest time
)

// Timeouts bounds what requests without a response cost a run: at most maxInARow time-outs in a row for each kind of
// request, and of all kinds together mostWasted and short ones. A bridge that is slow, and responds, has more time: four
// times as long as its slowest response. Runs before the same bridge may share it, one after the other: then the bounds are those of all.
type Timeouts struct {
	mu        sync.Mutex
	inARow    map[string]int              // time-outs in a row, by kind
	last      map[string]*client.Response // that timed out, by kind
	excuses   map[string]string           // why the last time-out of a kind is not the bridge's fault, by kind
	total     int                         // time-outs
	wasted    time.Duration               // waited without a response; requests at the same time count once
	until     time.Time                   // end of the last wait that is counted
	slowest   time.Duration               // of the responses
	slow      map[string]*Slowness        // by kind
	slowKinds map[string]string           // why no more of a kind are sent
	passedOn  bool                        // the bridge said that the mock was late, which it was not
}

// Slowness is what slow responses to a kind of request have cost a run.
type Slowness struct {
	Kind    string
	Waited  time.Duration // for responses that took a tenth of the time-out or more; those at the same time count once
	AtSite  time.Duration // of it, as far as the site is seen
	Slowest *client.Response
	During  string // the clause that was tested then; "": none
}

// Slowness is what the slow responses of the kind that is waited for longest have cost the run so far, and what all have.
func (r *Run) Slowness() (worst Slowness, all time.Duration) {
	p := r.spent()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.slow {
		all += s.Waited
		if s.Waited > worst.Waited {
			worst = *s
		}
	}
	return worst, all
}

// carried says why what a check found may depend on those before it; "": it does not.
func (p *Timeouts) carried() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.total > 0:
		return "the bridge did not respond in time"
	case len(p.slowKinds) > 0:
		return "the bridge is slow"
	case p.passedOn:
		return "the bridge reported a time-out of the site, although the mock had responded in time"
	}
	return ""
}

func (p *Timeouts) notePassedOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passedOn = true
}

// GiveUp sends no more requests of a kind: a check that needs one is not testable, and says why.
func (r *Run) GiveUp(kind, why string) {
	p := r.spent()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slowKinds == nil {
		p.slowKinds = map[string]string{}
	}
	p.slowKinds[kind] = why
	delete(p.slow, kind)
}

// tooSlow is why no more requests of a kind are sent; "": they are.
func (p *Timeouts) tooSlow(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slowKinds[strings.TrimSuffix(kind, furtherPages)]
}

// exhausted is the last response of a kind that is no longer sent; nil as long as it is.
func (p *Timeouts) exhausted(kind string) *client.Response {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inARow[kind] < maxInARow {
		return nil
	}
	return p.last[kind]
}

// excuse is why the last time-out of a kind is not the bridge's fault; "": it may be.
func (p *Timeouts) excuse(kind string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.excuses[kind]
}

func (p *Timeouts) noteExcuse(kind, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.excuses == nil {
		p.excuses = map[string]string{}
	}
	p.excuses[kind] = why
}

// limit is the time that the next request of a kind has.
func (p *Timeouts) limit(kind string, usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.wasted >= mostWasted:
		return min(usual, max(shortest, 4*p.slowest))
	case p.wasted >= maxWasted, p.total >= maxFull && p.inARow[kind] > 0:
		return min(usual, max(shorter, 4*p.slowest))
	}
	return usual
}

// note learns from a response, or from its absence. One that took longer than slow is counted; the site worked so long for it.
func (p *Timeouts) note(kind, during string, a *client.Response, slow, atSite time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := a.At.Add(a.Took)
	from := a.At
	if from.Before(p.until) {
		from = p.until
	}
	waited := max(0, end.Sub(from))
	if !errors.Is(a.Err, client.ErrTimeout) {
		delete(p.inARow, kind)
		if a.Err == nil {
			p.slowest = max(p.slowest, a.Took)
		}
		if a.Took >= slow {
			p.until = end
			p.noteSlow(strings.TrimSuffix(kind, furtherPages), during, a, waited, atSite) // pages are slow alike
		}
		return
	}
	if p.inARow == nil {
		p.inARow, p.last = map[string]int{}, map[string]*client.Response{}
	}
	p.inARow[kind]++
	p.last[kind] = a
	p.total++
	p.wasted += waited
	p.until = end
}

func (p *Timeouts) noteSlow(kind, during string, a *client.Response, waited, atSite time.Duration) {
	if p.slow == nil {
		p.slow = map[string]*Slowness{}
	}
	s := p.slow[kind]
	if s == nil {
		s = &Slowness{Kind: kind, Slowest: a, During: during}
		p.slow[kind] = s
	}
	s.Waited += waited
	s.AtSite += min(waited, atSite)
	if a.Took > s.Slowest.Took {
		s.Slowest, s.During = a, during
	}
}

var rpcMethod = regexp.MustCompile(`"method":\s*"([^"]*)"`)

// kindOf names the kind of a request: what a bridge treats alike. The first page of a list and the others are two kinds.
func kindOf(a *client.Response) string {
	kind := a.Method + " " + a.Path
	further := false
	switch a.Path {
	case client.DescribePath, client.InvokePath:
		if verb := map[string]string{client.DescribePath: http.MethodGet, client.InvokePath: http.MethodPost}[a.Path]; a.Method != verb {
			kind = "another verb than " + verb + " " + a.Path
		}
	case client.ListPath:
		query, _ := url.ParseQuery(a.RawQuery)
		further = query.Has("cursor")
	case client.MCPPath:
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
