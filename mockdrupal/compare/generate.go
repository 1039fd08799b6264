package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// generator draws requests.
type generator struct {
	dice     *rand.Rand
	accounts []string
	refuses  map[string]bool // accounts
	callers  []string        // the accounts that may use JSON-RPC
	methods  []method
	left     []string // methods that are not called
	refused  int      // requests that a site counts as failed logins
}

type method struct {
	*fixtures.Method
	maker *generate.Maker // nil: nothing fits its schemas
}

// longestSleep is how long a method may sleep that is called.
const longestSleep = 100 * time.Millisecond

func newGenerator(site *fixtures.Site, dice *rand.Rand) *generator {
	g := &generator{dice: dice, accounts: []string{fixtures.Anonymous, nobody}, refuses: refusedAccounts(site), left: []string{}}
	for _, u := range site.Users {
		g.accounts = append(g.accounts, u.Name)
		if site.Holds(&u, fixtures.UseJSONRPC) {
			g.callers = append(g.callers, u.Name)
		}
	}
	for i := range site.Methods {
		m := &site.Methods[i]
		switch b := m.Behaviour; {
		case b.Kind == fixtures.Count || b.Kind == fixtures.Runs:
			g.left = append(g.left, m.ID+" (it counts runs, and the sites did not begin at the same number)")
			continue
		case b.Sleep > longestSleep:
			g.left = append(g.left, fmt.Sprintf("%s (it sleeps %s)", m.ID, b.Sleep))
			continue
		}
		maker, err := generate.ForArguments(schemaOf(m), dice)
		if err != nil {
			maker = nil
		}
		g.methods = append(g.methods, method{m, maker})
	}
	return g
}

// schemaOf joins the schemas of a method's parameters. A parameter by position has its position as its name.
func schemaOf(m *fixtures.Method) map[string]any {
	properties, required := map[string]any{}, []any{}
	for _, p := range m.Params {
		if schema, err := exact.Parse(p.Resolved()); err == nil && p.Drupal == nil {
			properties[p.Name] = schema
			if p.Required {
				required = append(required, p.Name)
			}
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

func oneOf[T any](g *generator, list ...T) T { return list[g.dice.IntN(len(list))] }

// one reports true once in n times.
func (g *generator) one(n int) bool { return g.dice.IntN(n) == 0 }

func (g *generator) account() string {
	if len(g.callers) > 0 && !g.one(4) {
		return oneOf(g, g.callers...)
	}
	who := oneOf(g, g.accounts...)
	if g.refuses[who] {
		if g.refused++; g.refused > maxRefused {
			return fixtures.Anonymous
		}
	}
	return who
}

// request draws one.
func (g *generator) request() Generated {
	r := Generated{As: g.account(), Verb: http.MethodPost, Path: "/jsonrpc"}
	if g.one(6) {
		r.Verb = g.queryVerb()
	}
	switch n := g.dice.IntN(20); {
	case n < 11 && len(g.methods) > 0:
		r.Body = g.call(false)
	case n < 14 && len(g.methods) > 0:
		r.Body = g.batch()
	case n < 16:
		r.Body = g.strange()
	case n < 18:
		r.Body = g.malformed()
	case n < 19:
		r.Verb, r.Path = g.queryVerb(), g.discovery()
	default:
		r.Verb, r.Body = oneOf(g, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodGet, http.MethodHead, http.MethodOptions), ""
		if g.one(2) {
			r.Path = g.discovery()
		}
	}
	return r
}

// queryVerb draws a verb whose requests carry their calls in the query.
func (g *generator) queryVerb() string {
	return oneOf(g, http.MethodGet, http.MethodGet, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodOptions)
}

func (g *generator) discovery() string {
	if g.one(3) || len(g.methods) == 0 {
		return oneOf(g, "/jsonrpc/methods", "/jsonrpc/methods/no.such.method")
	}
	return "/jsonrpc/methods/" + url.PathEscape(oneOf(g, g.methods...).ID)
}

// call draws one call; odd ones have members that a request must not have.
func (g *generator) call(odd bool) string {
	m := oneOf(g, g.methods...)
	members := []string{`"jsonrpc":"2.0"`, `"method":` + encode(m.ID)}
	if odd {
		members = []string{
			oneOf(g, `"jsonrpc":"2.0"`, `"jsonrpc":"1.0"`, `"jsonrpc":"2"`, `"jsonrpc":2.0`, `"jsonrpc":2`, `"jsonrpc":null`, `"x":1`),
			oneOf(g, `"method":`+encode(m.ID), `"method":"no.such"`, `"method":""`, `"method":1`, `"method":null`, `"method":["`+"a"+`"]`, `"y":{}`),
		}
	}
	if id := g.id(odd); id != "" {
		members = append(members, `"id":`+id)
	}
	if params := g.params(m, odd); params != "" {
		members = append(members, `"params":`+params)
	}
	g.dice.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, oneOf(g, ",", ",", " ,\n")) + "}"
}

func (g *generator) id(odd bool) string {
	if odd && g.one(2) {
		return oneOf(g, "null", "true", "{}", "[]", "[1]", `{"a":1}`, "false")
	}
	return oneOf(g, "1", strconv.Itoa(g.dice.IntN(1_000_000)), `"a"`, `"é\"/<"`, "0", `""`, `"0"`, "-1", "1.5", "1.0", "9223372036854775807", "1e3", "", "")
}

func (g *generator) params(m method, odd bool) string {
	if odd && g.one(2) {
		return oneOf(g, "null", "1", `"text"`, "true", "[]", "{}", "[1,2]", `{"no_such":1}`)
	}
	if m.maker == nil || g.one(8) {
		return oneOf(g, "", "{}", "[]")
	}
	value, ok := m.maker.Drawn()
	if g.one(3) {
		if c, drawn := m.maker.DrawnBroken(); drawn {
			value, ok = c.Value, true
		}
	}
	if !ok {
		value = m.maker.Plain()
	}
	arguments, _ := value.(map[string]any)
	if len(m.Params) > 0 && g.one(6) { // another type in place of one argument
		changed := map[string]any{}
		maps.Copy(changed, arguments)
		changed[oneOf(g, m.Params...).Name] = json.RawMessage(oneOf(g, "null", "1", `"1"`, "1.0", "true", "[]", "{}", `"é\u0000</"`, "[null]", "1e400", `{"a":{}}`))
		arguments = changed
	}
	if !m.ByPosition {
		return encode(arguments)
	}
	positions := []any{}
	for i := range m.Params {
		if v, ok := arguments[strconv.Itoa(i)]; ok {
			positions = append(positions, v)
		}
	}
	return encode(positions)
}

func encode(v any) string {
	text, err := exact.Write(v)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func (g *generator) batch() string {
	calls := make([]string, 1+g.dice.IntN(4))
	for i := range calls {
		calls[i] = g.call(g.one(10))
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// strange draws JSON that is no request, or one with wrong members.
func (g *generator) strange() string {
	if len(g.methods) > 0 && !g.one(3) {
		return g.call(true)
	}
	return oneOf(g, "[]", "{}", "null", "1", `"text"`, "true", "[[]]", "[{}]", "[null]", `{"jsonrpc":"2.0"}`, `{"method":"x"}`, "[1,2]",
		`{"0":{"jsonrpc":"2.0","method":"no.such","id":1}}`, strings.Repeat("[", 600)+strings.Repeat("]", 600))
}

// malformed draws what is no JSON.
func (g *generator) malformed() string {
	text := `{"jsonrpc":"2.0","method":"x","id":1}`
	if len(g.methods) > 0 {
		text = g.call(false)
	}
	at := g.dice.IntN(len(text))
	switch g.dice.IntN(6) {
	case 0:
		return text[:at]
	case 1:
		return text[:at] + oneOf(g, "\x00", "\xff", "\ufeff", "'", ",", "}", "\\", "//") + text[at:]
	case 2:
		return oneOf(g, "\ufeff", "\xff\xfe", ")]}',\n", "x") + text
	case 3:
		return text + oneOf(g, "}", "x", ",", "\x00", text)
	case 4:
		return strings.ReplaceAll(text, `"`, "'")
	default:
		return oneOf(g, "", " ", "NaN", "01", "1.", "+1", `"\x"`, "{'a':1}", "[1,]", `{"a":1,}`, "tru")
	}
}

func newDice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
