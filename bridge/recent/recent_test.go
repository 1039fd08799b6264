package recent_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/bridge/recent"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// TestCache compares a cache with a list of keys in the order of their use.
func TestCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 20
		type value struct{ key, weight int }
		c := recent.New[int](most, func(v value) int { return v.weight })
		var want []value
		find := func(key int) int { return slices.IndexFunc(want, func(v value) bool { return v.key == key }) }
		use := func(key int) (value, bool) {
			i := find(key)
			if i < 0 {
				return value{}, false
			}
			v := want[i]
			want = append(slices.Delete(want, i, i+1), v)
			return v, true
		}
		set := func(v value) {
			if i := find(v.key); i >= 0 {
				want = slices.Delete(want, i, i+1)
			}
			want = append(want, v)
			for sum := 0; ; sum = 0 {
				for _, v := range want {
					sum += v.weight
				}
				if sum <= most {
					return
				}
				want = want[1:]
			}
		}
		key := rapid.IntRange(0, 8)
		t.Repeat(map[string]func(*rapid.T){
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				v, ok := c.Get(k)
				expected, there := use(k)
				must.Assert(t, v == expected && ok == there, "Get(%d) = %v, %t, want %v, %t", k, v, ok, expected, there)
			},
			"set": func(t *rapid.T) {
				v := value{key.Draw(t, "key"), rapid.IntRange(1, most+1).Draw(t, "weight")}
				c.Set(v.key, v)
				set(v)
			},
			"get or make": func(t *rapid.T) {
				v := value{key.Draw(t, "key"), rapid.IntRange(1, most).Draw(t, "weight")}
				expected, ok := use(v.key)
				if !ok {
					expected = v
					set(v)
				}
				got := c.GetOrMake(v.key, func() value { return v })
				must.Assert(t, got == expected, "GetOrMake(%v) = %v, want %v", v, got, expected)
			},
			"remove": func(t *rapid.T) {
				k := key.Draw(t, "key")
				c.Remove(k)
				if i := find(k); i >= 0 {
					want = slices.Delete(want, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				got := c.Values()
				slices.Reverse(got)
				must.Assert(t, slices.Equal(got, want) && c.Len() == len(want), "%d values %v, want %v", c.Len(), got, want)
			},
		})
	})
}
