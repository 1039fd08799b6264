package power

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// numbers are the transformations of numbers.
func numbers() []transformation {
	var all []transformation
	add := func(name string, do func(s string, f float64) any) {
		all = append(all, transformation{name: name, kind: number, do: func(v any) any {
			if n, ok := v.(json.Number); ok {
				f, _ := n.Float64()
				return do(string(n), f)
			}
			return v
		}})
	}
	where := func(name string, holds func(s string, f float64) bool, becomes func(s string, f float64) any) {
		add(name, func(s string, f float64) any {
			if holds(s, f) {
				return becomes(s, f)
			}
			return json.Number(s)
		})
	}
	rounded := func(round func(float64) float64) func(string, float64) any {
		return func(_ string, f float64) any { return json.Number(strconv.FormatInt(int64(round(f)), 10)) }
	}
	zero := func(string, float64) any { return json.Number("0") }
	formatted := func(name, format string) {
		add(name, func(_ string, f float64) any {
			if out := fmt.Sprintf(format, f); !math.IsInf(f, 0) {
				return json.Number(strings.TrimPrefix(out, "+"))
			}
			return nil
		})
	}
	within := func(name string, low, high float64) {
		add(name, func(s string, f float64) any {
			if f < low {
				return json.Number(strconv.FormatFloat(low, 'f', -1, 64))
			} else if f > high {
				return json.Number(strconv.FormatFloat(high, 'f', -1, 64))
			}
			return json.Number(s)
		})
	}
	add("through a double", func(s string, f float64) any {
		if math.IsInf(f, 0) {
			return nil
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
	})
	add("through a single", func(_ string, f float64) any {
		if single := float64(float32(f)); !math.IsInf(single, 0) {
			return json.Number(strconv.FormatFloat(single, 'g', -1, 32))
		}
		return nil
	})
	formatted("15 digits", "%.15g")
	formatted("14 digits, as PHP prints", "%.14g")
	formatted("6 digits", "%.6g")
	formatted("10 decimals", "%.10f")
	formatted("two decimals", "%.2f")
	formatted("no decimals", "%.0f")
	where("cut to an integer", func(s string, f float64) bool { return strings.ContainsAny(s, ".eE") && math.Abs(f) < 1e15 }, rounded(math.Trunc))
	where("rounded up", func(s string, f float64) bool { return strings.Contains(s, ".") && math.Abs(f) < 1e15 }, rounded(math.Ceil))
	within("within 16 bits", -1<<15, 1<<15-1)
	within("within 32 bits", math.MinInt32, math.MaxInt32)
	within("within 32 bits, unsigned", math.Inf(-1), math.MaxUint32)
	within("within 2^53", -(1<<53 - 1), 1<<53-1)
	within("not negative", 0, math.Inf(1))
	within("at most 1e300", -1e300, 1e300)
	wrap := func(name string, bits uint) {
		add(name, func(s string, _ float64) any {
			n, ok := new(big.Int).SetString(s, 10)
			if !ok {
				return json.Number(s)
			}
			half := new(big.Int).Lsh(big.NewInt(1), bits-1)
			n.Add(n, half)
			n.Mod(n, new(big.Int).Lsh(big.NewInt(1), bits))
			return json.Number(n.Sub(n, half).String())
		})
	}
	wrap("wrapped at 32 bits", 32)
	where("small ones to zero", func(_ string, f float64) bool { return f != 0 && math.Abs(f) < 1e-300 }, zero)
	where("very small ones to zero", func(_ string, f float64) bool { return f != 0 && math.Abs(f) < 1e-9 }, zero)
	add("zero to null", func(s string, f float64) any { return unless(f == 0, nil, json.Number(s)) })
	add("zero to false", func(s string, f float64) any { return unless(f == 0, false, json.Number(s)) })
	add("one to true", func(s string, _ float64) any { return unless(s == "1", true, json.Number(s)) })
	add("-1 to null", func(s string, _ float64) any { return unless(s == "-1", nil, json.Number(s)) })
	add("to texts", func(s string, _ float64) any { return s })
	add("beyond 2^53 to texts", func(s string, f float64) any { return unless(math.Abs(f) >= 1<<53, s, json.Number(s)) })
	add("decimals to texts", func(s string, _ float64) any { return unless(strings.Contains(s, "."), s, json.Number(s)) })
	add("exponents read as digits", func(s string, _ float64) any {
		mantissa, _, found := strings.Cut(strings.ToLower(s), "e")
		return unless(found, json.Number(mantissa), json.Number(s))
	})
	add("sign lost", func(s string, _ float64) any { return json.Number(strings.TrimPrefix(s, "-")) })
	add("large ones to Infinity, and so to null", func(s string, f float64) any { return unless(math.Abs(f) > 1.5e308, nil, json.Number(s)) })
	add("times in seconds to texts", func(s string, f float64) any { return unless(f > 1e9 && f < 2e9, "2023", json.Number(s)) })
	add("times in milliseconds to seconds", func(s string, f float64) any {
		return unless(f > 1e12 && f < 2e12, json.Number(strconv.FormatInt(int64(f/1000), 10)), json.Number(s))
	})
	return all
}

func unless(met bool, then, otherwise any) any {
	if met {
		return then
	}
	return otherwise
}

// worthless are the values that programs leave out of lists and objects.
var worthless = []struct {
	name string
	is   func(v any) bool
}{
	{"null", func(v any) bool { return v == nil }},
	{"empty texts", func(v any) bool { return v == "" }},
	{"false", func(v any) bool { return v == false }},
	{"zero", func(v any) bool { return v == json.Number("0") }},
	{"empty lists", func(v any) bool { l, ok := v.([]any); return ok && len(l) == 0 }},
	{"empty objects", func(v any) bool { o, ok := v.(map[string]any); return ok && len(o) == 0 }},
}

// others are the transformations of booleans, null, lists and objects.
func others() []transformation {
	var all []transformation
	flag := func(name string, yes, no any) {
		all = append(all, transformation{name: name, kind: boolean, do: func(v any) any {
			if b, ok := v.(bool); ok {
				return unless(b, yes, no)
			}
			return v
		}})
	}
	flag("to numbers", json.Number("1"), json.Number("0"))
	flag("to texts", "true", "false")
	flag("as PHP prints them", "1", "")
	flag("false to null", true, nil)
	flag("false to the empty text", true, "")
	flag("negated", false, true)
	flag("always true", true, true)
	nothing := func(name string, value any) {
		all = append(all, transformation{name: name, kind: null, do: func(v any) any { return unless(v == nil, value, v) }})
	}
	nothing("to the empty text", "")
	nothing("to an object", map[string]any{})
	nothing("to a list", []any{})
	nothing("to false", false)
	nothing("to zero", json.Number("0"))
	nothing("to a text", "null")

	lists := func(name string, do func([]any) any) {
		all = append(all, transformation{name: name, kind: list, do: func(v any) any {
			if l, ok := v.([]any); ok {
				return do(l)
			}
			return v
		}})
	}
	lists("sorted", func(l []any) any {
		l = slices.Clone(l)
		slices.SortStableFunc(l, func(a, b any) int { return strings.Compare(written(a), written(b)) })
		return l
	})
	lists("reversed", func(l []any) any { l = slices.Clone(l); slices.Reverse(l); return l })
	unique := func(same func(a, b any) bool) func([]any) any {
		return func(l []any) any {
			var kept []any
			for _, v := range l {
				if !slices.ContainsFunc(kept, func(k any) bool { return same(k, v) }) {
					kept = append(kept, v)
				}
			}
			return unless(len(l) == 0, l, kept)
		}
	}
	lists("without duplicates", unique(exact.Equal))
	lists("without duplicates, loosely", unique(func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }))
	lists("the empty list to an object", func(l []any) any { return unless(len(l) == 0, map[string]any{}, l) })
	lists("the empty list to null", func(l []any) any { return unless(len(l) == 0, nil, l) })
	lists("one item instead of a list of one", func(l []any) any {
		if len(l) == 1 {
			return l[0]
		}
		return l
	})
	lists("the first item", func(l []any) any { return l[:min(len(l), 1)] })
	lists("without the last item", func(l []any) any { return l[:max(len(l)-1, 0)] })
	lists("to an object by index", func(l []any) any {
		object := map[string]any{}
		for i, v := range l {
			object[strconv.Itoa(i)] = v
		}
		return object
	})
	lists("flattened", func(l []any) any {
		flat := []any{}
		for _, v := range l {
			if inner, ok := v.([]any); ok {
				flat = append(flat, inner...)
			} else {
				flat = append(flat, v)
			}
		}
		return flat
	})
	for _, v := range worthless {
		lists("without "+v.name, func(l []any) any { return slices.DeleteFunc(slices.Clone(l), v.is) })
	}
	for _, n := range []int{3, 5, 10, 20, 25, 50, 100, 128, 200, 256, 500} {
		lists(fmt.Sprintf("at most %d items", n), func(l []any) any { return l[:min(len(l), n)] })
	}
	lists("in a list", func(l []any) any { return []any{l} })
	lists("joined with commas", func(l []any) any { return asText(l) })
	lists("integers to decimals of a common type", func(l []any) any {
		if len(l) < 2 || !slices.ContainsFunc(l, func(v any) bool { n, ok := v.(json.Number); return ok && strings.Contains(string(n), ".") }) {
			return l
		}
		return slices.Collect(func(yield func(any) bool) {
			for _, v := range l {
				if n, ok := v.(json.Number); ok {
					if f, err := strconv.ParseFloat(string(n), 32); err == nil { // else it is no number of JSON any more
						v = json.Number(strconv.FormatFloat(f, 'g', -1, 32))
					}
				}
				if !yield(v) {
					return
				}
			}
		})
	})

	objects := func(name string, do func(map[string]any) any) {
		all = append(all, transformation{name: name, kind: object, do: func(v any) any {
			if o, ok := v.(map[string]any); ok {
				return do(o)
			}
			return v
		}})
	}
	without := func(drops func(name string, v any) bool) func(map[string]any) any {
		return func(o map[string]any) any {
			o = maps.Clone(o)
			maps.DeleteFunc(o, drops)
			return o
		}
	}
	called := func(names ...string) func(map[string]any) any {
		return without(func(name string, _ any) bool { return slices.Contains(names, name) })
	}
	objects("the empty object to a list", func(o map[string]any) any { return unless(len(o) == 0, []any{}, o) })
	objects("the empty object to null", func(o map[string]any) any { return unless(len(o) == 0, nil, o) })
	for _, v := range worthless {
		objects("without "+v.name, without(func(_ string, member any) bool { return v.is(member) }))
	}
	objects("the empty name dropped", called(""))
	for _, n := range []string{"__proto__", "constructor", "id", "type", "class", "name", "$ref", "length"} {
		objects(n+" dropped", called(n))
	}
	for _, first := range []string{"_", "$", "@", "#", "."} {
		objects("names that begin with "+first+" dropped", without(func(name string, _ any) bool { return strings.HasPrefix(name, first) }))
	}
	objects("names with a dot dropped", without(func(name string, _ any) bool { return strings.Contains(name, ".") }))
	objects("names with a NUL dropped", without(func(name string, _ any) bool { return strings.Contains(name, "\x00") }))
	objects("names with a dot to objects", func(o map[string]any) any {
		out := map[string]any{}
		for n, v := range o {
			if outer, inner, dotted := strings.Cut(n, "."); dotted {
				out[outer] = map[string]any{inner: v}
			} else {
				out[n] = v
			}
		}
		return out
	})
	objects("numeric names to a list", func(o map[string]any) any {
		var l []any
		for i := range len(o) {
			v, ok := o[strconv.Itoa(i)]
			if !ok {
				return o
			}
			l = append(l, v)
		}
		return unless(len(o) == 0, o, l)
	})
	objects("names from 1 to a list", func(o map[string]any) any {
		_, one := o["1"]
		return unless(one && len(o) == 2, []any{o}, o)
	})
	for _, wrapper := range []string{"result", "data", "value", "error"} {
		objects("unwrapped from "+wrapper, func(o map[string]any) any {
			if v, ok := o[wrapper]; ok && len(o) == 1 {
				return v
			}
			return o
		})
	}
	objects("one member instead of an object of one", func(o map[string]any) any {
		for _, v := range o {
			if len(o) == 1 {
				return v
			}
		}
		return o
	})
	objects("a JSON-RPC response opened", func(o map[string]any) any {
		if v, ok := o["result"]; ok && o["jsonrpc"] != nil {
			return v
		}
		return o
	})
	objects("names that differ in case alone merged", func(o map[string]any) any {
		out := map[string]any{}
		for _, n := range slices.Sorted(maps.Keys(o)) {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(out)), func(k string) bool { return strings.EqualFold(k, n) }) {
				out[n] = o[n]
			}
		}
		return out
	})
	objects("to a list of its values", func(o map[string]any) any {
		l := []any{}
		for _, n := range slices.Sorted(maps.Keys(o)) {
			l = append(l, o[n])
		}
		return l
	})
	objects("to a text", func(o map[string]any) any { return asText(o) })
	for _, n := range []int{5, 8} {
		objects(fmt.Sprintf("at most %d members", n), func(o map[string]any) any {
			out := map[string]any{}
			for _, name := range slices.Sorted(maps.Keys(o))[:min(n, len(o))] {
				out[name] = o[name]
			}
			return out
		})
	}
	objects("an object in a list flattened", func(o map[string]any) any {
		out := map[string]any{}
		for n, v := range o {
			if inner, ok := v.(map[string]any); ok && len(inner) > 0 {
				for m, w := range inner {
					out[n+"."+m] = w
				}
			} else {
				out[n] = v
			}
		}
		return out
	})
	objects("with a default", func(o map[string]any) any {
		o = maps.Clone(o)
		if _, there := o["status"]; !there {
			o["status"] = "ok"
		}
		return o
	})
	for _, deep := range []int{3, 4, 5, 8, 10, 16, 20} {
		cut := func(v any) any { return shallow(v, deep) }
		all = append(all, transformation{name: fmt.Sprintf("at most %d levels", deep), kind: object, do: cut})
	}
	return all
}

// shallow replaces what is deeper by null.
func shallow(v any, levels int) any {
	switch v := v.(type) {
	case map[string]any:
		if levels == 0 {
			return nil
		}
		out := map[string]any{}
		for n, m := range v {
			out[n] = shallow(m, levels-1)
		}
		return out
	case []any:
		if levels == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i, m := range v {
			out[i] = shallow(m, levels-1)
		}
		return out
	}
	return v
}

func written(v any) string {
	b, err := exact.Write(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// asText is a value as it is written. What is within others, twenty levels of them, doubles the escapes of a text with each: it ends there.
func asText(v any) any {
	if s := written(v); len(s) < 1<<16 {
		return s
	}
	return v
}

// named are the transformations of texts as ones of the names of members.
func named() []transformation {
	var all []transformation
	for _, t := range append(texts(), of(text, "to snake_case", func(s string) any { return snake(s) }), of(text, "to camelCase", func(s string) any { return camel(s) }),
		of(text, "- to _", func(s string) any { return strings.ReplaceAll(s, "-", "_") }),
		of(text, "without a character that no identifier has", func(s string) any {
			return strings.Map(func(r rune) rune {
				return otherwise(r, r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9', '_')
			}, s)
		})) {
		if t.coerces {
			continue // a name is a text
		}
		all = append(all, transformation{name: t.name, kind: name, do: func(v any) any {
			o, ok := v.(map[string]any)
			if !ok {
				return v
			}
			out := map[string]any{}
			for n, m := range o {
				if changed, ok := t.do(n).(string); ok {
					out[changed] = m
				} else {
					out[n] = m
				}
			}
			return out
		}})
	}
	return all
}

func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func camel(s string) string {
	parts := strings.Split(s, "_")
	for i, p := range parts[1:] {
		parts[i+1] = first(p, func(r rune) rune { return []rune(strings.ToUpper(string(r)))[0] })
	}
	return strings.Join(parts, "")
}
