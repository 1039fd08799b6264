package filter

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		in, out          []string
	}{
		{DefaultInclude, DefaultExclude,
			[]string{"content.get", "content.a.b", "search.x", "taxonomy.terms", "media.list"},
			[]string{"system.cache_clear", "user.login", "node.delete", "content.admin.purge", "content", "xcontent.get", "Content.get", ""}},
		{[]string{"*"}, []string{"*.delete"}, []string{"a", "a.b", "a\nb", "a.delete.b"}, []string{"a.delete", "a.b.delete"}},
		{[]string{"a.[bc]", "d+e", "f?"}, nil, []string{"a.[bc]", "d+e", "f?"}, []string{"a.b", "dde", "f", "fx"}},
		{nil, nil, nil, []string{"a", ""}},
		{[]string{"a.*"}, []string{"a.*"}, nil, []string{"a.b"}},
	} {
		p := must.Get(NewPatterns(c.include, c.exclude))(t)
		for _, id := range c.in {
			must.Expect(t, p.Match(id), "%v but %v: %q is out", c.include, c.exclude, id)
		}
		for _, id := range c.out {
			must.Expect(t, !p.Match(id), "%v but %v: %q is in", c.include, c.exclude, id)
		}
	}
}

// Underscored names are distinct, portable and short, and do not depend on the order of the ids.
func TestUnderscoredNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfDistinct(rapid.OneOf(rapid.StringMatching(`[ab._ -]{1,4}`), rapid.String(), rapid.StringMatching(`[a.]{70,80}`)),
			func(s string) string { return s }).Draw(t, "ids")
		names := NamingUnderscore.Names(ids)
		seen := map[string]bool{}
		for i, name := range names {
			must.Assert(t, !seen[name], "%q and another id are both called %q: %q", ids[i], name, ids)
			seen[name] = true
			must.Assert(t, len(name) <= maxName && underscored(name) == name, "the name %q of %q is not portable", name, ids[i])
		}
		reversed := slices.Clone(ids)
		slices.Reverse(reversed)
		again := NamingUnderscore.Names(reversed)
		slices.Reverse(again)
		must.Assert(t, slices.Equal(names, again), "names depend on the order: %q and %q", names, again)
	})
}
