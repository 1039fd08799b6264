package access

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/exact"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/match"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// talk is what one caller heard; what was not asked is nil.
type talk struct {
	who                                   harness.Identity
	name                                  string // of the tool that does not exist, and that no other talk is about
	list, described, special, unknown, me *harness.Response
}

// converse asks on for one of three topics, a tool that all see, one that some may run, one that nobody else asks for,
// and for who the caller is.
func converse(ctx context.Context, t *harness.T, item *talk, me scenario.Sample, special string, topic int) {
	c := t.As(item.who)
	switch topic {
	case 0:
		item.described = scenario.Delivered(ctx, t, func() *harness.Response { return c.Describe(ctx, me.Name) })
	case 1:
		item.special = scenario.Delivered(ctx, t, func() *harness.Response { return c.Invoke(ctx, special, harness.Args{}) })
	case 2:
		item.unknown = scenario.Delivered(ctx, t, func() *harness.Response { return c.Invoke(ctx, item.name, harness.Args{}) })
	}
	item.me = scenario.Delivered(ctx, t, func() *harness.Response { return c.Invoke(ctx, me.Name, me.Arguments) })
}

// ShowTheSameTools matches a list answer with the same tools as another, in any order.
func ShowTheSameTools(alone *harness.Response) OmegaMatcher {
	sorted := func(a *harness.Response) []any {
		tools := a.Tools()
		slices.SortFunc(tools, func(x, y harness.Tool) int { return strings.Compare(x.Name(), y.Name()) })
		list := make([]any, len(tools))
		for i, tool := range tools {
			list[i] = map[string]any(tool)
		}
		return list
	}
	return match.Conform("the caller's own tools", func(a *harness.Response) string {
		if a.Status != http.StatusOK {
			return a.Outcome()
		}
		if d := exact.Diff(sorted(alone), sorted(a)); d != "" {
			return "others " + d
		}
		return ""
	})
}

// BeAnsweredAs matches an answer of the same status and code as another, and of the same body where that is a success.
func BeAnsweredAs(alone *harness.Response) OmegaMatcher {
	return match.Conform("the caller's own answer: "+alone.Outcome(), func(a *harness.Response) string {
		if a.Status != alone.Status || a.Code() != alone.Code() || !alone.IsError() && !match.SameBody(a, alone) {
			return a.Outcome()
		}
		return ""
	})
}

// SpeakOfCaller matches the answer to a caller who asked who they are: a success that names them, and no other of all.
func SpeakOfCaller(who harness.Identity, all []harness.Identity) OmegaMatcher {
	return match.Conform("a result that names "+who.String(), func(a *harness.Response) string {
		for _, name := range all {
			word := regexp.MustCompile(`\b` + regexp.QuoteMeta(string(name)) + `\b`)
			if a.IsError() || word.Match(a.Body) != (name == who) {
				return a.Outcome()
			}
		}
		return ""
	})
}

var numberedTool = regexp.MustCompile(`no\.such\.\d+\.tool`)

// SpeakOfNoOther matches a refusal of a tool that only one caller asked for, which names no other such tool.
func SpeakOfNoOther(own string) OmegaMatcher {
	return match.Conform("a refusal that speaks of no tool but "+own, func(a *harness.Response) string {
		others := slices.DeleteFunc(numberedTool.FindAllString(string(a.Body), -1), func(name string) bool { return name == own })
		if !a.IsError() || len(others) > 0 {
			return a.Outcome()
		}
		return ""
	})
}

// ShowNoneOf matches a page of tools that holds none of another caller's.
func ShowNoneOf(names []string) OmegaMatcher {
	return match.Conform("a page without tools that only another caller may see", func(a *harness.Response) string {
		for _, tool := range a.Tools() {
			if slices.Contains(names, tool.Name()) {
				return fmt.Sprintf("%q in it", tool.Name())
			}
		}
		return ""
	})
}
