package list

import (
	"context"
	"fmt"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/scenario"
)

// pageSizeAsItIs is pageSize on a site that cannot be changed.
func pageSizeAsItIs(ctx context.Context, t *check.T) {
	list := steadyList(ctx, t)
	haveFullPages(t, list)
	if n := len(list.Tools()); n <= t.PageSize && !t.HasFindings() {
		check.NotTestable(fmt.Sprintf("the agent sees %d tools, and a page holds %d: set a smaller page size at the bridge and give it as --page-size %d", n, t.PageSize, max(1, n/2)))
	}
}

// pageBoundaryAsItIs is pageBoundaryExact on a site that cannot be changed, where its tools fill their pages.
func pageBoundaryAsItIs(ctx context.Context, t *check.T) {
	list := steadyList(ctx, t)
	size, n := t.PageSize, len(list.Tools())
	if len(list.Pages) > 1 {
		size = len(list.Pages[0].Tools()) // the page size of the bridge, which list/page-size tests
	}
	rest := 0
	if size > 0 {
		rest = n % size
	}
	if n == 0 || rest > 1 || rest == 1 && size == 1 || n < size {
		check.NotTestable(fmt.Sprintf("the agent sees %d tools, which do not fill pages of %d: set a page size of %d at the bridge and give it as --page-size", n, size, largestDivisor(n)))
	}
	pages := slices.Repeat([]int{size}, n/size)
	if rest == 1 {
		pages = append(pages, 1)
	}
	t.Row(check.Agent, "", fmt.Sprintf("%d tools", n), func() { t.Expect(list).To(havePagesOf(pages...)) })
}

// largestDivisor of a number is its largest one below it, at most 50.
func largestDivisor(n int) int {
	for d := min(n-1, 50); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

// emptyForSomebody is emptySite on a site that cannot be changed, where a caller may run none of its methods.
func emptyForSomebody(ctx context.Context, t *check.T) {
	if t.Site == nil || !t.Claims("visibility-filtered") {
		check.NotTestable(check.NeedsSite)
	}
	tested := 0
	for _, who := range t.Callers(check.Discoverer, check.Service, check.Agent2) {
		if t.Site.Unknown(who) != "" || !t.Site.MayUse(who) || slices.ContainsFunc(t.Site.Methods(), func(m fixtures.Method) bool { return t.Site.MayRun(who, &m) }) {
			continue
		}
		tested++
		t.Row(who, "", "to a caller who may run none of the methods", func() { t.Expect(t.As(who).List(ctx)).To(beEmptyList()) })
	}
	if tested == 0 {
		check.NotTestable("it needs a caller who may discover tools and use JSON-RPC, and may run no method: give such an account as discoverer")
	}
}

// cursorsLent is cursorOtherCaller on a site that cannot be changed.
func cursorsLent(ctx context.Context, t *check.T) {
	callers := t.Callers(check.Agent, check.Discoverer, check.Admin)
	if len(callers) < 2 {
		check.NotTestable("it needs two callers: give credentials of the discoverer or the admin, too")
	}
	sent := 0
	for _, owner := range callers {
		for _, sender := range callers {
			if sender != owner && t.As(sender).List(ctx).Succeeded() && t.As(owner).List(ctx).Succeeded() {
				sent += lendCursors(ctx, t, t.As(sender), t.As(owner))
			}
		}
	}
	if sent == 0 {
		needsPages(scenario.AllTools(ctx, t, t.As(check.Agent)))
	}
}

// needsPages ends a check that needs a list of several pages.
func needsPages(list check.Listing) {
	n := len(list.Tools())
	check.NotTestable(fmt.Sprintf("the list has one page of %d tools: set a smaller page size at the bridge and give it as --page-size %d", n, max(1, n/2)))
}
