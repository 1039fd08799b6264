package surface_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/surface"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
)

// listed is a surface of one tool, whose members are the given text, as the agent sees it.
func listed(t *testing.T, members string) *surface.Surface {
	t.Helper()
	return must.Get(surface.Parse([]byte(`{"tools": [{"name": "a", `+members+`}]}`), "agent"))(t)
}

const object = `{"type": "object"}`

// input is a tool with one argument, and output one with such a result.
func input(argument string) string {
	return `"inputSchema": {"type": "object", "properties": {"q": ` + argument + `}}`
}

func output(schema string) string { return `"inputSchema": ` + object + `, "outputSchema": ` + schema }

func annotated(hints string) string {
	return `"inputSchema": ` + object + `, "annotations": {` + hints + `}`
}

// TestRules shows each rule a difference that it is about, and nothing else.
func TestRules(t *testing.T) {
	shown := map[string]bool{"caller/refused": true, "caller/served": true, "caller/not-compared": true, "tool/lost": true, "tool/gained": true} // in tests below
	for _, c := range []struct{ old, now, want string }{
		{input(`{"type": "string"}`), input(`{"type": "string"}`), ""},
		{input(`{"type": "string"}`), input(`{"type": ["string", "null"]}`), "input/wider"},
		{input(`{"type": ["string", "null"]}`), input(`{"type": "string"}`), "input/type"},
		{input(`{"type": "number"}`), input(`{"type": "integer"}`), "input/type"},
		{input(`{"type": "integer"}`), input(`{"type": "number"}`), "input/wider"},
		{input(`{"enum": ["a", "b"]}`), input(`{"enum": ["b"]}`), "input/values"},
		{input(`{"enum": ["a", "b"]}`), input(`{"enum": ["b", "a"]}`), "input/spelling"},
		{input(`{"enum": ["a"]}`), input(`{"const": "a"}`), "input/spelling"},
		{input(`{"type": "integer", "minimum": 1}`), input(`{"type": "integer", "minimum": 2}`), "input/range"},
		{input(`{"type": "integer", "minimum": 1}`), input(`{"type": "integer", "exclusiveMinimum": 0}`), "input/spelling"},
		{input(`{"type": "string"}`), input(`{"type": "string", "maxLength": 5}`), "input/length"},
		{input(`{"type": "string"}`), input(`{"type": "string", "pattern": "^a"}`), "input/pattern"},
		{input(`{"type": "string"}`), input(`{"type": "string", "format": "date"}`), "input/format"},
		{input(`{"type": "array"}`), input(`{"type": "array", "maxItems": 3}`), "input/count"},
		{input(`{"type": "string"}`), `"inputSchema": {"type": "object", "properties": {}, "additionalProperties": false}`, "input/closed"},
		{input(`{"type": "string"}`), `"inputSchema": ` + object, "input/ignored"},
		{input(`{"type": "string"}`), `"inputSchema": {"type": "object", "properties": {"q": {"type": "string"}, "r": {"type": "string"}}}`, "input/wider"},
		{input(`{"type": "string"}`), `"inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}`, "input/required"},
		{input(`{"type": "string"}`), `"inputSchema": {"type": "object", "properties": {"q": {"$ref": "#/$defs/q"}}, "$defs": {"q": {"type": "string"}}}`, "input/spelling"},
		{input(`{"type": "string"}`), input(`{"anyOf": [{"type": "string"}, {"type": "integer"}]}`), "input/wider"},
		{input(`{"type": ["string", "integer"]}`), input(`{"anyOf": [{"type": "string"}, {"type": "integer"}]}`), "input/spelling"},
		{`"inputSchema": {"type": "object", "properties": {}}`, `"inputSchema": {"type": "object", "properties": []}`, "input/invalid"},
		{input(`{"type": "integer", "minimum": 1}`), input(`{"type": "integer", "minimum": 0, "exclusiveMinimum": true}`), "input/spelling"}, // Draft 4
		{output(object), output(`{"type": "object", "required": "a"}`), "output/invalid"},
		{input(`{"type": "string", "pattern": "^[ab]+$"}`), input(`{"type": "string", "pattern": "^[a-c]+$"}`), "input/pattern"}, // nobody can compare them: allow it
		{input(`{"type": "string"}`), input(`{"type": "string", "if": {"const": "x"}, "then": {"type": "string"}}`), "input/unproved"},
		{input(`{"type": "array", "items": {"type": "integer"}}`), input(`{"type": "array", "contains": {"type": "integer"}}`), "input/narrower"},
		{input(`{"type": "string", "default": "a"}`), input(`{"type": "string", "default": "b"}`), "input/default"},
		{input(`{"type": "string", "description": "a"}`), input(`{"type": "string", "description": "b"}`), "model/argument"},
		{output(`{"type": "string"}`), output(`{"type": ["string", "null"]}`), "output/type"},
		{output(`{"type": ["string", "null"]}`), output(`{"type": "string"}`), "output/narrower"},
		{output(`{"enum": ["a"]}`), output(`{"enum": ["a", "b"]}`), "output/values"},
		{output(`{"type": "integer", "minimum": 1}`), output(`{"type": "integer"}`), "output/range"},
		{output(`{"type": "string", "minLength": 1}`), output(`{"type": "string"}`), "output/length"},
		{output(`{"type": "string", "pattern": "^a"}`), output(`{"type": "string"}`), "output/pattern"},
		{output(`{"type": "string", "format": "date"}`), output(`{"type": "string"}`), "output/format"},
		{output(`{"type": "array", "minItems": 1}`), output(`{"type": "array"}`), "output/count"},
		{output(`{"type": "object", "properties": {"a": {}}, "required": ["a"]}`), output(`{"type": "object", "properties": {"a": {}}}`), "output/required"},
		{output(`{"type": "object", "additionalProperties": false}`), output(object), "output/closed"},
		{output(`{"type": "string", "if": {"const": "x"}, "then": {"type": "string"}}`), output(`{"type": "string"}`), "output/unproved"},
		{output(`{"type": "array", "contains": {"type": "integer"}}`), output(`{"type": "array", "items": {"type": "integer"}}`), "output/wider"},
		{output(`{"type": "string", "enum": ["a"]}`), output(`{"enum": ["a"]}`), "output/spelling"},
		{output(object), `"inputSchema": ` + object, "output/lost"},
		{`"inputSchema": ` + object, output(object), "output/promised"},
		{annotated(`"readOnlyHint": true`), annotated(`"readOnlyHint": false`), "model/safety"},
		{annotated(`"readOnlyHint": false`), annotated(`"readOnlyHint": true`), "model/safety"},
		{annotated(``), annotated(`"readOnlyHint": false, "destructiveHint": true`), ""},
		{annotated(`"readOnlyHint": true`), annotated(`"readOnlyHint": true, "destructiveHint": false`), ""},
		{annotated(`"category": "x"`), annotated(`"category": "y"`), "model/annotation"},
		{`"description": "a"`, `"description": "b"`, "model/description"},
		{`"title": "a"`, `"title": "b"`, "model/title"},
	} {
		d := surface.Compare(t.Context(), listed(t, c.old), listed(t, c.now))
		var got []string
		for _, change := range d.Changes {
			got = append(got, change.ID)
			shown[change.ID] = true
		}
		must.Expect(t, strings.Join(got, " ") == c.want, "%s → %s: want %q, got %+v", c.old, c.now, c.want, d.Changes)
	}
	for _, r := range surface.Rules() {
		must.Expect(t, shown[r.ID], "no difference shows the rule %s: add a row", r.ID)
		must.Expect(t, r.Why != "" && r.Says != "" && slices.Contains([]surface.Class{surface.Callers, surface.Models, surface.Additive}, r.Class),
			"the rule %s lacks what it says, why, or a class", r.ID)
	}
}

// people is a surface of the tools that each caller sees.
func people(refused map[string]int, seen map[string][]string) *surface.Surface {
	s := &surface.Surface{}
	for caller, status := range refused {
		s.Add(surface.Caller{Name: caller, Refused: status}, nil)
	}
	for caller, names := range seen {
		var tools []map[string]any
		for _, name := range names {
			tools = append(tools, map[string]any{"name": name})
		}
		s.Add(surface.Caller{Name: caller}, tools)
	}
	return s
}

func TestCallersAreCompared(t *testing.T) {
	old := people(map[string]int{"blocked": 403}, map[string][]string{"agent": {"a", "b"}, "admin": {"a", "b", "c"}, "guest": {"a"}, "gone": nil})
	now := people(map[string]int{"guest": 401}, map[string][]string{"agent": {"a", "d"}, "admin": {"a", "b", "c", "d"}, "blocked": {"a"}, "new": nil})
	var got []string
	for _, c := range surface.Compare(t.Context(), old, now).Changes {
		got = append(got, fmt.Sprintf("%s %s %v", c.ID, c.Tool, c.Callers))
	}
	slices.Sort(got)
	want := []string{"caller/not-compared  [gone new]", "caller/refused  [guest]", "caller/served  [blocked]", "tool/gained a [blocked]", "tool/gained d [admin agent]", "tool/lost b [agent]"}
	must.Expect(t, slices.Equal(got, want), "want %q\ngot %q", want, got)
}

// A lock is the same whatever the order in which callers and tools came, and reads back as it was.
func TestLockIsStable(t *testing.T) {
	a, b := people(nil, map[string][]string{"agent": {"a", "b"}, "admin": {"b", "a"}}), people(nil, map[string][]string{"admin": {"a", "b"}, "agent": {"b", "a"}})
	first := must.Get(a.Lock())(t)
	second, err := b.Lock()
	must.Expect(t, err == nil && bytes.Equal(first, second), "want the same file, got\n%s\n%s\n%v", first, second, err)
	read := must.Get(surface.Parse(first, "nobody"))(t)
	again, _ := read.Lock()
	must.Expect(t, bytes.Equal(first, again), "read back:\n%s", again)
	line := surface.Lines(first)("b")
	must.Expect(t, strings.Contains(strings.Split(string(first), "\n")[line-1], `"name": "b"`), "the tool b is not on line %d of\n%s", line, first)
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		`{"tools": [], "nextCursor": "x"}`: "goes on at a nextCursor",
		`{"tools": [{}]}`:                  "tool 1 of page 1 has no name",
		`{"a": 1}`:                         "no list of tools",
		`[`:                                "",
		`{"tools_lock": "9"}`:              "reads version 1",
		`{"tools_lock": "1", "tools": [{"callers": ["x"], "tool": {"name": "a"}}]}`: `the caller "x"`,
	} {
		must.Refuse(surface.Parse([]byte(text), "agent"))(t, says, text)
	}
	for _, text := range []string{`{"result": {"tools": [{"name": "a"}]}}`, `[{"tools": [{"name": "a"}], "nextCursor": "x"}, {"tools": []}]`, `[{"name": "a"}]`} {
		s, err := surface.Parse([]byte(text), "agent")
		must.Expect(t, err == nil && len(s.Tools) == 1, "%s: want one tool, got %v, %v", text, s, err)
	}
}

func TestAllowList(t *testing.T) {
	old, now := listed(t, input(`{"type": ["string", "null"]}`)), listed(t, input(`{"type": "string"}`))
	day := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for entry, want := range map[string]struct{ code, problems int }{
		"clause: input/type\n    tool: a\n    until: 2026-05-01": {0, 0},
		"clause: input/type\n    until: 2026-04-30":              {1, 1}, // expired
		"clause: input/type\n    tool: b":                        {1, 1}, // matches nothing
		"clause: input/type\n    identity: agent":                {0, 0},
		"clause: input/type\n    identity: admin":                {1, 1},
		"clause: tool/lost":                                      {1, 1},
	} {
		file := must.Get(baseline.Parse("allow.yaml", []byte("known:\n  - "+entry+"\n    reason: agreed\n")))(t)
		d := surface.Compare(t.Context(), old, now)
		d.Allow(file, day)
		must.Expect(t, d.ExitCode() == want.code && len(d.Problems) == want.problems,
			"%s: want %+v, got exit code %d and %+v", entry, want, d.ExitCode(), d.Problems)
	}
}

// What a bridge says is shown as it is in no format: no line of it is a command or markup.
func TestFormatsShowHostileTexts(t *testing.T) {
	d := surface.Compare(t.Context(), listed(t, `"description": "x"`), listed(t, `"description": "\u001b[2J\n::error::x ##vso[y] <script>|"`))
	for _, name := range surface.Formats {
		var b bytes.Buffer
		must.Do(t, d.Write(&b, name, "1", func(string) int { return 1 }))
		if text := b.String(); strings.Contains(text, "\x1b") || strings.Contains(text, "\n::error") || name == "junit" && strings.Contains(text, "##vso[") || name == "markdown" && strings.Contains(text, "<script>") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
	must.Say(t, d.Write(&bytes.Buffer{}, "html", "1", nil), "", "want an error for an unknown format")
}

// What is read reads back as the same lock.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}`, `[{"tools": []}]`,
		`{"tools_lock": "1", "callers": [{"name": "x"}], "tools": [{"callers": ["x"], "tool": {"name": "a"}}]}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := surface.Parse(data, "agent")
		if err != nil {
			return
		}
		lock := must.Get(s.Lock())(t)
		again, err := surface.Parse(lock, "nobody")
		must.Assert(t, err == nil, "%v\n%s", err, lock)
		second, err := again.Lock()
		must.Expect(t, err == nil && bytes.Equal(lock, second), "read back:\n%s\n%s\n%v", lock, second, err)
	})
}

// What is read is bounded by what comes, for a device, or a link to one, has no size.
func TestADeviceIsNoSurface(t *testing.T) {
	const device = "/dev/zero"
	if _, err := os.Stat(device); err != nil {
		t.Skipf("there is no %s: %v", device, err)
	}
	must.Refuse(surface.Read(device, "agent"))(t, "larger than")
}
