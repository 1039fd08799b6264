package access

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// conversation is the responses that one caller received; nil for a request that was not sent.
type conversation struct {
	who                                   check.Identity
	client                                check.Client
	name                                  string // of an unknown tool that no other conversation names
	describes                             bool   // the unknown tool and the one that some may run, in place of running it
	list, described, special, unknown, me *check.Response
	seen                                  *check.Response // describe of the tool that some may run
}

// underLoad is a response that a caller received while 64 called, and what it must be.
type underLoad struct {
	name     string
	response *check.Response
	must     OmegaMatcher
}

// expect compares responses of a conversation, but for those that load/concurrent-exact tests: not sent, or failed under load.
func (item conversation) expect(t *check.T, all []underLoad) {
	for _, got := range all {
		if got.response != nil && got.response.Status != 0 && got.response.Status < http.StatusBadGateway {
			t.Row(item.who, "", got.name+", many at once", func() { t.Expect(got.response).To(got.must) })
		}
	}
}

// sendTopic sends the request of one of four topics: describe a tool that all see, run or describe a tool that some may run, run or describe
// an unknown tool of the caller's own, run the tool that returns its caller.
func sendTopic(ctx context.Context, t *check.T, item *conversation, me scenario.Sample, special string, topic int) {
	c := item.client
	switch topic {
	case 0:
		item.described = scenario.Delivered(ctx, t, func() *check.Response { return c.Describe(ctx, me.Name) })
	case 1:
		if item.describes {
			item.seen = scenario.Delivered(ctx, t, func() *check.Response { return c.Describe(ctx, special) })
			return
		}
		item.special = scenario.Delivered(ctx, t, func() *check.Response { return c.Invoke(ctx, special, check.Args{}) })
	case 2:
		item.unknown = scenario.Delivered(ctx, t, func() *check.Response {
			if item.describes {
				return c.Describe(ctx, item.name)
			}
			return c.Invoke(ctx, item.name, check.Args{})
		})
	case 3:
		item.me = scenario.Delivered(ctx, t, func() *check.Response { return c.Invoke(ctx, me.Name, me.Arguments) })
	}
}

// refusedAtOnce invokes a tool at the same time with arguments of which one or another is wrong, behind a list that takes some time to
// validate: each refusal is about its own.
func refusedAtOnce(ctx context.Context, t *check.T, c check.Client) {
	if _, there := t.Method(scenario.Lists); !there {
		return
	}
	long := make([]int, 8000)
	wrong := []string{"mixed", "objects"}
	refused := func(i int) *check.Response {
		return scenario.Delivered(ctx, t, func() *check.Response {
			return c.Invoke(ctx, t.ToolName(scenario.Lists), check.Args{"matrix": [][]int{long}, "tags": []string{"w"}, wrong[i%2]: "no list"})
		})
	}
	names := func(r *check.Response, i int) bool { return strings.Contains(string(r.Body), wrong[i%2]) }
	for i := range wrong {
		if alone := refused(i); alone.Status != http.StatusBadRequest || !names(alone, i) || names(alone, i+1) {
			return // invoke/invalid-arguments-400 and invoke/invalid-arguments-named test that
		}
	}
	responses := make([]*check.Response, 8)
	check.AtOnce(len(responses), func(i int) { responses[i] = refused(i) })
	for i, r := range responses {
		item := underLoad{"an invoke with a wrong " + wrong[i%2], r, match.MatchWhere("a refusal for this argument alone", func(r *check.Response) bool {
			return r.Status == http.StatusBadRequest && names(r, i) && !names(r, i+1)
		})}
		conversation{who: c.Who}.expect(t, []underLoad{item})
	}
}

// failedAtOnce invokes two tools that fail at the same time, while the site takes a little for each: an error names its own tool, and
// has its own message.
func failedAtOnce(ctx context.Context, t *check.T, c check.Client) {
	failing := slices.DeleteFunc(scenario.Samples(t, check.Agent, fixtures.Fail), func(s scenario.Sample) bool {
		return s.Fails().Code >= scenario.RPCInternalError && s.Fails().Code <= -32600 // JSON-RPC's own, which a bridge reads
	})
	if len(failing) < 2 {
		return
	}
	disarm := t.Drupal.Arm(mockdrupal.Fault{Kind: fault.Delay, Route: route.JSONRPC, Delay: 20 * time.Millisecond})
	responses := make([]*check.Response, 8)
	check.AtOnce(len(responses), func(i int) {
		responses[i] = scenario.Delivered(ctx, t, func() *check.Response { return c.Invoke(ctx, failing[i%2].Name, failing[i%2].Arguments) })
	})
	disarm()
	for i, r := range responses {
		own, other := failing[i%2], failing[(i+1)%2]
		item := underLoad{"an invoke of a tool that fails, " + own.Name, r, match.Conform("an error that is not about "+other.Name, func(r *check.Response) string {
			switch {
			case !r.IsError():
				return "no error: " + r.Outcome()
			case strings.Contains(string(r.Body), other.Name), strings.Contains(string(r.Body), other.Fails().Message):
				return r.Outcome()
			}
			return ""
		})}
		conversation{who: c.Who}.expect(t, []underLoad{item})
	}
}

// invokeInTwoParts runs a tool by a request of which something else happens between the header and the body.
func invokeInTwoParts(ctx context.Context, c check.Client, call scenario.Sample, between func()) *check.Response {
	request := client.InvokeRequest(client.Encode(map[string]any{"name": call.Name, "arguments": call.Arguments}))
	request.Length = int64(len(request.Show)) // net/http then sends the header before it reads the body
	request.Body = pausingBody{bytes.NewReader([]byte(request.Show)), between}
	return c.Send(ctx, request)
}

// pausingBody is a body with something to do before its first byte.
type pausingBody struct {
	body   *bytes.Reader
	before func()
}

func (p pausingBody) Seek(offset int64, whence int) (int64, error) {
	return p.body.Seek(offset, whence)
}

func (p pausingBody) Read(b []byte) (int, error) {
	if int64(p.body.Len()) == p.body.Size() {
		p.before()
	}
	return p.body.Read(b)
}

// showSameTools matches a list response with the same tools as another, in any order.
func showSameTools(alone *check.Response) OmegaMatcher {
	sorted := func(r *check.Response) []any {
		tools := r.Tools()
		slices.SortFunc(tools, func(x, y check.Tool) int { return strings.Compare(x.Name(), y.Name()) })
		list := make([]any, len(tools))
		for i, tool := range tools {
			list[i] = map[string]any(tool)
		}
		return list
	}
	return match.Conform("the caller's own tools", func(r *check.Response) string {
		if r.Status != http.StatusOK {
			return r.Outcome()
		}
		if d := match.Difference(sorted(alone), sorted(r)); d != "" {
			return "other tools " + d
		}
		return ""
	})
}

// haveOutcomeOf matches a response with the status and code of another, and with its body if that is a success.
func haveOutcomeOf(alone *check.Response) OmegaMatcher {
	return match.MatchWhere("the caller's own response: "+alone.Outcome(), func(r *check.Response) bool {
		own, has := alone.Member("result")
		result, also := r.Member("result")
		same := has && also && exact.Equal(own, result) || match.SameBody(r, alone) // other members, such as a duration, are the bridge's own
		return r.Status == alone.Status && r.Code() == alone.Code() && (alone.IsError() || same)
	})
}

// nameOnlyCaller matches the result of the tool that returns its caller: a success that names who and no other of all.
func nameOnlyCaller(who check.Identity, all []check.Identity) OmegaMatcher {
	return match.MatchWhere("a result that names "+who.String(), func(r *check.Response) bool {
		return !r.IsError() && !slices.ContainsFunc(all, func(name check.Identity) bool {
			word := regexp.MustCompile(`\b` + regexp.QuoteMeta(string(name)) + `\b`)
			return word.Match(r.Body) != (name == who)
		})
	})
}

var numberedTool = regexp.MustCompile(`no\.such\.\d+\.tool`)

// nameNoOtherTool matches a refusal of an unknown tool that only one caller named, if it names no other such tool.
func nameNoOtherTool(own string) OmegaMatcher {
	return match.MatchWhere("a refusal that names no tool but "+own, func(r *check.Response) bool {
		others := slices.DeleteFunc(numberedTool.FindAllString(string(r.Body), -1), func(name string) bool { return name == own })
		return r.IsError() && len(others) == 0
	})
}

// showNoneOf matches a page without the tools that only another caller may see.
func showNoneOf(names []string) OmegaMatcher {
	return match.Conform("a page without tools that only another caller may see", func(r *check.Response) string {
		for _, tool := range r.Tools() {
			if slices.Contains(names, tool.Name()) {
				return fmt.Sprintf("%q in it", tool.Name())
			}
		}
		return ""
	})
}
