package filter

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/gomega"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/match"
)

// includeExcludeAsItIs is includeExclude on a site that cannot be changed. It invokes nothing.
func includeExcludeAsItIs(ctx context.Context, t *check.T) {
	if t.Site == nil {
		check.NotTestable(check.NeedsSite)
	}
	mustKnowPatterns(t)
	who := broadest(t)
	caller := t.As(who)
	listed := caller.MustListAll(ctx).Names()
	included, excluded := 0, 0
	for _, m := range t.Site.Methods() {
		if !t.Site.MayRun(who, &m) || m.Unchecked || m.ByPosition {
			continue
		}
		name := t.ToolName(m.ID)
		if t.PatternsInUse().Exposes(m.ID) {
			included++
			t.For(who, name, func() {
				t.Expect(listed).To(ContainElement(name), check.Mismatch("list as "+who.String(), fmt.Sprintf("%q, which the patterns include", name), fmt.Sprintf("%d tools without it", len(listed))))
				t.Expect(caller.Describe(ctx, name)).To(match.BeTool(name), "the patterns include it")
			})
			continue
		}
		excluded++
		t.For(who, name, func() {
			t.Expect(slices.Contains(listed, name)).To(BeFalse(), check.Mismatch("list as "+who.String(), fmt.Sprintf("no %q, which the patterns do not include", name), "it in the list"))
			t.Expect(caller.Describe(ctx, name)).To(match.BeRefusedWith(404), "the patterns do not include it")
		})
	}
	if (included == 0 || excluded == 0) && !t.HasFindings() {
		check.NotTestable(fmt.Sprintf("the patterns include %d methods of the site %s and do not include %d: it needs some of both", included, t.Site.Name(), excluded))
	}
}

// mustKnowPatterns ends the check where nobody has said by which patterns a bridge before a real site goes.
func mustKnowPatterns(t *check.T) {
	if t.Drupal == nil && t.Patterns == nil {
		check.NotTestable("the patterns of the bridge are not known: give settings.include and settings.exclude in the configuration")
	}
}

// broadest is the caller who sees most: the service account, or the agent where the run has no credentials for it.
func broadest(t *check.T) check.Identity {
	if t.Knows(check.Service) && t.Site.Unknown(check.Service) == "" {
		return check.Service
	}
	return check.Agent
}
