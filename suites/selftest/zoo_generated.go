package selftest

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// What shows only to values and sequences that nobody would write down: at an edge, for one keyword, within others,
// after certain steps.
var generatedMutants = []Mutant{
	{Name: "steps-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined, Why: "multipleOf was forgotten", Wired: unchecked(breaks("multipleOf"))},
	{Name: "unique-items-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined, Wired: unchecked(breaks("uniqueItems"))},
	{Name: "list-length-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined, Wired: unchecked(breaks("maxItems", "minItems"))},
	{Name: "member-count-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined, Wired: unchecked(breaks("minProperties", "maxProperties"))},
	{Name: "constants-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined, Wired: unchecked(breaks("const"))},
	{Name: "one-of-read-as-any-of", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Wired: unchecked(everyOne(func(v violation) bool {
		return v.Keyword == "oneOf" && regexp.MustCompile(`^number -?(6|12)`).MatchString(v.Received)
	}))},
	{Name: "exclusive-bounds-inclusive", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "Draft 4's exclusiveMinimum: true is all it knows",
		Wired: unchecked(breaks("exclusiveMinimum", "exclusiveMaximum"))},
	{Name: "maximum-off-by-one", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined, Why: "the first integer above the maximum is taken",
		Wired: unchecked(everyOne(func(v violation) bool { return v.Keyword == "maximum" && outBy(v) <= 1 }))},
	{Name: "max-length-off-by-one", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined, Wired: unchecked(everyOne(func(v violation) bool {
		most, ok := strings.CutSuffix(strings.TrimPrefix(v.Expected, "at most "), " characters")
		n, err := strconv.Atoi(most)
		return ok && err == nil && len([]rune(textOf(v))) == n+1
	}))},
	{Name: "patterns-unanchored", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Why: "what follows the match is not looked at",
		Wired: unchecked(everyOne(func(v violation) bool {
			begin, err := regexp.Compile(strings.TrimSuffix(strings.TrimPrefix(v.Expected, "a string that matches "), "$"))
			return v.Keyword == "pattern" && err == nil && begin.MatchString(textOf(v))
		}))},
	{Name: "enums-regardless-of-case", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined,
		Wired: unchecked(everyOne(func(v violation) bool {
			return v.Keyword == "enum" && textOf(v) != "" && strings.Contains(v.Expected, strings.ToLower(textOf(v)))
		}))},
	{Name: "first-item-checked-only", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Peer, Wired: unchecked(everyOne(func(v violation) bool {
		return regexp.MustCompile(`\.[1-9]\d*(\.|$)`).MatchString(v.Parameter)
	}))},
	{Name: "three-levels-checked-only", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined,
		Wired: unchecked(everyOne(func(v violation) bool { return strings.Count(v.Parameter, ".") > 3 }))},
	{Name: "nested-required-unchecked", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined,
		Wired: unchecked(everyOne(func(v violation) bool { return v.Received == "nothing" && strings.Contains(v.Parameter, ".") }))},
	{Name: "closed-objects-open", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Imagined,
		Wired: unchecked(everyOne(func(v violation) bool { return v.Expected == "no such member" }))},
	{Name: "digits-for-an-integer", Breaks: Clauses("invoke/invalid-arguments-400", "upstream/eager-validation"), Origin: Module, Why: "PHP casts them",
		Wired: unchecked(everyOne(func(v violation) bool {
			return v.Keyword == "type" && regexp.MustCompile(`^string "\d+"$`).MatchString(v.Received)
		}))},

	{Name: "maximum-exclusive", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Why: "the largest value that is allowed is refused",
		Front: refusingArguments(func(arguments map[string]any) bool { return string(encode(arguments["limit"])) == "100" })},
	{Name: "length-in-utf16-units", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "JavaScript counts so",
		Front: refusingArguments(func(arguments map[string]any) bool {
			code, _ := arguments["code"].(string)
			return len([]rune(code)) <= 8 && units(code) > 8
		})},
	{Name: "empty-text-for-a-required-one-refused", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "`empty($arguments['message'])`",
		Front: refusingArguments(func(arguments map[string]any) bool { return arguments["message"] == "" })},
	{Name: "second-type-refused", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Why: "of the types that a value may have the first one counts",
		Front: refusingArguments(func(arguments map[string]any) bool { return string(encode(arguments["number"])) == "0.5" })},
	{Name: "pattern-held-to-the-whole", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "a pattern without anchors matches anywhere; fullmatch does not",
		Front: refusingArguments(func(arguments map[string]any) bool {
			part, ok := arguments["part"].(string)
			return ok && len(part) != len("0-0")
		})},
	{Name: "longest-list-refused", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Peer, Why: "the longest list that is allowed is refused",
		Front: refusingArguments(func(arguments map[string]any) bool { tags, _ := arguments["tags"].([]any); return len(tags) == 5 })},
	{Name: "nested-unknown-members-dropped", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Why: "open objects are cut down to what is named",
		Upstream: onParams(func(params any) any {
			arguments, _ := params.(map[string]any)
			filter, _ := arguments["filter"].(map[string]any)
			if author, ok := filter["author"].(map[string]any); ok {
				for name := range author {
					if name != "id" && name != "name" {
						delete(author, name)
					}
				}
			}
			return params
		})},
	{Name: "equal-items-forwarded-once", Breaks: Clauses("invoke/arguments-forwarded"), Origin: Imagined, Why: "`array_unique`",
		Upstream: onArguments(func(v any) any {
			list, ok := v.([]any)
			if !ok {
				return v
			}
			kept := []any{}
			for _, item := range list {
				if !slices.ContainsFunc(kept, func(k any) bool { return bytes.Equal(encode(k), encode(item)) }) {
					kept = append(kept, item)
				}
			}
			return kept
		})},

	{Name: "nested-output-unchecked", Breaks: Clauses("invoke/output-matches-schema"), Origin: Imagined, Why: "only the result's own type is looked at",
		Wired: func(site *wire) front {
			return onBadOutput(func(x *exchange) {
				if x.invoked() == "result.record" {
					site.run(x, x.Request.Header.Get("Authorization"))
				}
			})
		}},
	{Name: "output-refused-at-its-edge", Breaks: Clauses("invoke/output-matches-schema"), Origin: Imagined, Why: "the smallest id that is allowed is refused",
		Front: onInvoke(func(x *exchange) {
			result, _ := x.Object()["result"].(map[string]any)
			if x.invoked() == "result.record" && string(encode(result["id"])) == "1" {
				x.Refuse(http.StatusInternalServerError, "execution_error", "The result breaks the output schema.")
			}
		})},

	{Name: "last-run-first", Breaks: Clauses("list/order-stable"), Origin: Imagined, Why: "tools are listed by when they were last used", Front: lastRunFirst()},
	{Name: "describe-forgets-after-a-refusal", Breaks: Clauses("describe/equals-list"), Free: Clauses("access/no-cross-talk"), Origin: Imagined,
		Why: "the check of arguments takes `required` out of the schema that describe shows", Front: forgetsRequired()},
	{Name: "result-kept-after-describe", Breaks: Clauses("access/no-cross-talk"), Origin: Imagined,
		Why: "a result that follows a describe is kept for the next caller", Front: keptAfterDescribe()},
}

// textOf is the string that a fault tells of; "" where it tells of none, or of a long one.
func textOf(v violation) string {
	text, ok := strings.CutPrefix(v.Received, "string ")
	if !ok {
		return ""
	}
	plain, err := strconv.Unquote(text)
	if err != nil {
		return ""
	}
	return plain
}

// outBy is how far a number is above the maximum.
func outBy(v violation) float64 {
	got, err := strconv.ParseFloat(strings.TrimPrefix(v.Received, "number "), 64)
	if err != nil {
		return 0
	}
	most, err := strconv.ParseFloat(strings.TrimPrefix(v.Expected, "at most "), 64)
	if err != nil {
		return 0
	}
	return got - most
}

// units are how many UTF-16 units a text takes.
func units(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// refusingArguments refuses invokes whose arguments are as said before they get any further.
func refusingArguments(refused func(arguments map[string]any) bool) front {
	return onRequest(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !toInvoke(r) || !small(r) {
			return false
		}
		body := drain(r)
		fill(r, body)
		arguments, ok := decode(body)["arguments"].(map[string]any)
		if !ok || !refused(arguments) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"code":"invalid_params","message":"The arguments do not fit the schema."}}`)
		return true
	})
}

// lastRunFirst puts the tool that was run last before all others of its page.
func lastRunFirst() front {
	var mu sync.Mutex
	var last string
	lists, invokes := onList(func(p *page) {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(p.Tools, func(t any) bool { return t.(tool)["name"] == last })
		if i > 0 {
			p.Tools = slices.Concat(p.Tools[i:i+1], p.Tools[:i], p.Tools[i+1:])
		}
	}), onInvoke(func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		if x.Status == http.StatusOK {
			last = x.invoked()
		}
	})
	return func(next http.Handler) http.Handler { return lists(invokes(next)) }
}

// forgetsRequired has describe show a tool without `required` once its arguments were refused, until it is listed anew.
func forgetsRequired() front {
	var mu sync.Mutex
	refused := map[string]bool{}
	describes, invokes := onAnswer(toDescribe, func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		object := x.Object()
		shown, _ := object["tool"].(map[string]any)
		if input, ok := shown["inputSchema"].(map[string]any); ok && refused[x.described()] {
			delete(input, "required")
			input["title"] = "Arguments"
			shown["inputSchema"] = input
			x.Body = encode(object)
		}
	}), onInvoke(func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		if x.Status == http.StatusBadRequest {
			refused[x.invoked()] = true
		} else {
			delete(refused, x.invoked())
		}
	})
	return func(next http.Handler) http.Handler { return describes(invokes(next)) }
}

// keptAfterDescribe answers an invoke with the result of another caller's, where that followed a describe of the tool
// and nothing was listed since.
func keptAfterDescribe() front {
	var mu sync.Mutex
	var described string
	kept := map[string][]byte{}
	return onAnswer(everything, func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case toList(x.Request):
			clear(kept)
		case toDescribe(x.Request):
			described = x.described()
		case toInvoke(x.Request) && x.Status == http.StatusOK:
			if body, ok := kept[x.invoked()]; ok {
				x.Body = body
				delete(kept, x.invoked())
			} else if described == x.invoked() {
				kept[described] = x.Body
			}
			described = ""
		}
	})
}
