package harness

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
	maxSilent  = 3                      // time-outs in a row of one kind of request; further ones are not sent
	maxPatient = 2                      // time-outs of a run that last as long as they may
	shorter    = 2 * time.Second        // lasts each of those after them
	maxWasted  = 20 * time.Second       // that a run waits in vain, at most a time-out more
	shortest   = 500 * time.Millisecond // lasts each time-out after that
)

// patience bounds what requests without a response cost a run: at most maxSilent time-outs for each kind of request, and
// of all kinds together maxWasted and many short ones. A bridge that is slow, and responds, has more time: four times as
// long as its slowest response.
type patience struct {
	mu      sync.Mutex
	silent  map[string]int       // time-outs in a row, by kind
	last    map[string]*Response // that timed out, by kind
	total   int                  // time-outs
	wasted  time.Duration        // waited in vain; requests at the same time count once
	until   time.Time            // end of the last wait that is counted
	slowest time.Duration        // of the responses
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

// limit is the time that the next request has.
func (p *patience) limit(usual time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.total < maxPatient:
		return usual
	case p.wasted < maxWasted:
		return min(usual, max(shorter, 4*p.slowest))
	}
	return min(usual, max(shortest, 4*p.slowest))
}

// note learns from a response, or from its absence.
func (p *patience) note(kind string, a *Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(a.Err, ErrTimeout) {
		delete(p.silent, kind)
		if a.Err == nil {
			p.slowest = max(p.slowest, a.Took)
		}
		return
	}
	if p.silent == nil {
		p.silent, p.last = map[string]int{}, map[string]*Response{}
	}
	p.silent[kind]++
	p.last[kind] = a
	p.total++
	end := a.At.Add(a.Took)
	from := a.At
	if from.Before(p.until) {
		from = p.until
	}
	p.wasted += max(0, end.Sub(from))
	p.until = end
}

// Patiently sends a request by the given function, within the time that it has, and fills in its response. What was sent
// in vain maxSilent times in a row is not sent again: then the last of those is the response.
func (c Client) Patiently(a *Response, send func(limit time.Duration)) *Response {
	p, kind, faulty := &c.T.patience, kindOf(a), c.T.Upstream.Faulty()
	if last := p.exhausted(kind); last != nil {
		return c.unsent(last)
	}
	limit := c.T.Timeout
	if !faulty { // else the bridge may wait for the site
		limit = p.limit(limit)
	}
	c.T.WaitForRate()
	a.At = time.Now()
	send(limit)
	if a.Took == 0 {
		a.Took = time.Since(a.At)
	}
	if !faulty {
		p.note(kind, a)
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
		kind += ", further pages"
	}
	return kind
}

// unsent is the response to a request that is not sent, because so many of its kind timed out: the last of those.
func (c Client) unsent(last *Response) *Response {
	a := *last
	a.T = c.T
	a.Err = fmt.Errorf("%w, as %d in a row before it: no more of this kind are sent", ErrTimeout, maxSilent)
	c.T.unsent.Add(1)
	c.T.Record(&a, c.T.Upstream.Last())
	return &a
}
