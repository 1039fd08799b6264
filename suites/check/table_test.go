package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/redact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

func TestCallerOf(t *testing.T) {
	own := &T{Environment: &Environment{Config: Config{Claimed: []string{"naming-id"}}}}
	sent := []*exchange{
		{Response: &Response{Shown: `{"name":"echo","arguments":{"n":1,"list":[]}}`}},
		{Response: &Response{Shown: `{"name":"echo","arguments":{"n":2}}`}},
		{Response: &Response{Shown: `{"name":"plain","arguments":{}}`}},
		{Response: &Response{Shown: `{"name":"plain","arguments":{}}`}, caused: []mockdrupal.Entry{{}}},
		{Response: &Response{Asked: 7, Shown: `{"id":7,"method":"tools/call","params":{"name":"by.mcp","arguments":{"a":"b"}}}`}},
		{Response: &Response{Shown: "no JSON"}},
	}
	for name, c := range map[string]struct {
		call mockdrupal.Call
		want int // -1: none
	}{
		"the same arguments":             {mockdrupal.Call{Method: "echo", Params: fixtures.Raw(`{"list":[],"n":1}`)}, 0},
		"those of another row":           {mockdrupal.Call{Method: "echo", Params: fixtures.Raw(`{"n":2}`)}, 1},
		"changed arguments":              {mockdrupal.Call{Method: "echo", Params: fixtures.Raw(`{"n":"2"}`)}, -1},
		"an empty object as a list":      {mockdrupal.Call{Method: "echo", Params: fixtures.Raw(`{"list":{},"n":1}`)}, -1},
		"no params for no arguments":     {mockdrupal.Call{Method: "plain"}, 2},
		"an empty list for no arguments": {mockdrupal.Call{Method: "plain", Params: fixtures.Raw(`[]`)}, 2},
		"by MCP":                         {mockdrupal.Call{Method: "by.mcp", Params: fixtures.Raw(`{"a":"b"}`)}, 4},
		"a method that nobody named":     {mockdrupal.Call{Method: "other", Params: fixtures.Raw(`{}`)}, -1},
		"params that are no JSON":        {mockdrupal.Call{Method: "plain", Params: fixtures.Raw(`{`)}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, slices.Index(sent, own.callerOf(c.call, sent)), c.want, "the row of the call")
		})
	}
}

// slowRows sends rows that take a time, and notes how many were under way at a time and what was sent.
type slowRows struct {
	takes func(open int) time.Duration
	fails func(r *Response, row, try int)

	mu         sync.Mutex
	open, most int
	tries      map[int]int
}

func (s *slowRows) send(t *T) func(int) *Response {
	s.tries = map[int]int{}
	return func(row int) *Response {
		s.mu.Lock()
		s.open++
		s.most = max(s.most, s.open)
		s.tries[row]++
		r := &Response{Status: 200, Body: fmt.Append(nil, row), Took: s.takes(s.open)}
		if s.fails != nil {
			s.fails(r, row, s.tries[row])
		}
		s.mu.Unlock()
		time.Sleep(r.Took)
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
		t.record(r, 0)
		return r
	}
}

func newT() *T {
	return &T{Environment: &Environment{Config: Config{Redact: &redact.Redactor{}}, Run: &patience.Run{Context: context.Background()}}, recording: true}
}

func TestTable(t *testing.T) {
	const rows = 30
	for name, c := range map[string]struct {
		*slowRows
		concurrency int // at a time at most
		twice       []int
	}{
		"fast":                              {&slowRows{takes: func(int) time.Duration { return time.Millisecond }}, 1, nil},
		"slow":                              {&slowRows{takes: func(int) time.Duration { return slowRow }}, maxConcurrency, nil},
		"slower for each that is under way": {&slowRows{takes: func(open int) time.Duration { return slowRow * time.Duration(open) }}, firstConcurrency, nil},
		"one that is not served beside others": {&slowRows{takes: func(int) time.Duration { return slowRow }, fails: func(r *Response, row, try int) {
			if row == 4 && try == 1 {
				r.Err = errors.New("no response")
			}
		}}, firstConcurrency, []int{2, 3, 4, 5}},
		"one whose company breaks the bridge": {&slowRows{takes: func(int) time.Duration { return slowRow }, fails: func(r *Response, row, try int) {
			if row == 4 && try == 1 {
				r.Status = 500
			}
		}}, firstConcurrency, []int{2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := newT()
			table := own.Table(rows, c.send(own))
			for row := range rows {
				if r := table.Response(row); string(r.Body) != fmt.Sprint(row) || r.Err != nil || r.Status != 200 {
					t.Errorf("the response to row %d is %d %s, %v", row, r.Status, r.Body, r.Err)
				}
			}
			must.Expect(t, c.most == c.concurrency, "%d rows went at a time, want %d", c.most, c.concurrency)
			for row, n := range c.tries {
				want := 1 + min(1, slices.Index(c.twice, row)+1)
				must.Expect(t, n == want, "row %d was sent %d times, want %d", row, n, want)
			}
			for i, e := range own.exchanges {
				must.Expect(t, string(e.Response.Body) == fmt.Sprint(i), "the evidence has row %s in place of row %d", e.Response.Body, i)
			}
			must.Expect(t, len(own.exchanges) == rows, "the evidence has %d exchanges, want %d", len(own.exchanges), rows)
		})
	}
}

// A row that fails beside others is sent again by itself: that response counts, and is the evidence. What must not be in a
// response counts at once.
func TestAFailingRowIsSentAgain(t *testing.T) {
	const wrong, always, forbidden = 7, 8, 9
	own := newT()
	s := &slowRows{takes: func(int) time.Duration { return slowRow }}
	send := s.send(own)
	table := own.Table(12, func(row int) *Response {
		r := send(row)
		if row == wrong && s.tries[row] == 1 || row == always {
			r.Status = 404
		}
		return r
	})
	for row := range 12 {
		r := table.Response(row)
		own.Row(Agent, "", fmt.Sprint(row), func() {
			own.Expect(r).NotTo(gomega.HaveField("Body", []byte(fmt.Sprint(forbidden))))
			own.Expect(r).To(gomega.HaveField("Status", 200))
		})
	}
	if found := own.findings.noted; len(found) != 2 || found[0].Row != fmt.Sprint(always) || found[1].Row != fmt.Sprint(forbidden) {
		t.Errorf("the findings are %v, want those of the rows %d and %d", found, always, forbidden)
	}
	must.Expect(t, s.tries[forbidden] == 1 && s.tries[wrong] == 2 && s.tries[always] == 2 && len(own.exchanges) == 12,
		"rows %d and %d were sent %d and %d times, and the evidence has %d exchanges", wrong, always, s.tries[wrong], s.tries[always], len(own.exchanges))
}

// What the bridge did not serve is asked by each check for itself.
func TestSharedRowsAreSentOnce(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		status int
		want   int
	}{"described": {"GET", 200, 1}, "refused": {"POST", 400, 1}, "ran": {"POST", 200, 1}, "busy": {"GET", 429, 2}, "failed": {"GET", 500, 2}} {
		t.Run(name, func(t *testing.T) {
			sent, env := 0, newT().Environment
			env.Target = &client.Target{}
			for range 2 {
				own := &T{Environment: env, recording: true}
				got := own.Table(1, func(int) *Response {
					sent++
					r := &Response{Method: c.method, Status: c.status}
					own.record(r, 0)
					return r
				}).Shared(func(int) string { return "a row" }).Response(0)
				must.Expect(t, got.Status == c.status && slices.Equal(own.Responses(), []*Response{got}),
					"the response is %v, and the evidence %v", got.Status, own.Responses())
			}
			must.Expect(t, sent == c.want, "it was sent %d times, want %d", sent, c.want)
		})
	}
}

func TestSameFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fixtures.Site)
		want   bool
	}{
		"as it was":          {func(*fixtures.Site) {}, true},
		"another account":    {func(s *fixtures.Site) { s.Users = append(slices.Clone(s.Users), fixtures.User{Name: "new"}) }, true},
		"a method gone":      {func(s *fixtures.Site) { s.Methods = s.Methods[1:] }, false},
		"the account gone":   {func(s *fixtures.Site) { s.Users = nil }, false},
		"its permissions":    {func(s *fixtures.Site) { s.Roles = nil }, false},
		"another capability": {func(s *fixtures.Site) { s.Extensions = !s.Extensions }, false},
	} {
		one := must.Get(fixtures.Builtin("default"))(t)
		other := one.Clone()
		if c.change(other); sameFor(Agent, one, other) != c.want {
			t.Errorf("%s: the site is the same: %t, want %t", name, !c.want, c.want)
		}
	}
}
