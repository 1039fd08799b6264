package surface

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/baseline"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// Change is one difference of two surfaces.
type Change struct {
	Rule
	Tool    string   `json:"tool,omitempty"` // "": the difference is of a caller as a whole
	Callers []string `json:"callers"`        // who see it
	At      string   `json:"at,omitempty"`   // JSON pointer into the arguments, the result or the annotations
	Old     string   `json:"old,omitempty"`  // for people
	New     string   `json:"new,omitempty"`
	Example string   `json:"example,omitempty"` // JSON of arguments or a result: one side takes it, the other refuses it
	Allowed string   `json:"allowed,omitempty"` // the reason why the allow-list lets it pass; "": it does not
}

// key is what a change is about, for all callers.
func (c Change) key() string {
	return fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s\x00%s", c.ID, c.Tool, c.At, c.Old, c.New, c.Example)
}

// Differences are those of two surfaces, from the old one to the new one.
type Differences struct {
	Old      string                    `json:"old"` // what the sides are called
	New      string                    `json:"new"`
	Strict   bool                      `json:"strict,omitempty"`
	Changes  []Change                  `json:"changes"`
	Problems []reports.BaselineProblem `json:"problems,omitempty"` // entries of the allow-list that do not hold; each fails the gate
}

// Compare classifies the differences of two surfaces, for the callers that both have. Where the context ends, so does it, and what it
// returns is not all.
func Compare(ctx context.Context, old, now *Surface) *Differences {
	d := &Differences{Changes: []Change{}}
	at := map[string]int{}
	add := func(caller string, c Change) {
		i, known := at[c.key()]
		if !known {
			i = len(d.Changes)
			at[c.key()] = i
			d.Changes = append(d.Changes, c)
		}
		if !slices.Contains(d.Changes[i].Callers, caller) {
			d.Changes[i].Callers = append(d.Changes[i].Callers, caller)
		}
	}
	compared := map[string][]Change{} // by both forms of a tool: callers mostly see the same
	for _, before := range old.Callers {
		after, both := now.of(before.Name)
		switch {
		case !both:
			add(before.Name, change("caller/not-compared", "", "", "", ""))
			continue
		case before.Refused == 0 && after.Refused != 0:
			add(before.Name, change("caller/refused", "", "", "", fmt.Sprint(after.Refused)))
			continue
		case before.Refused != 0 && after.Refused == 0:
			add(before.Name, change("caller/served", "", "", fmt.Sprint(before.Refused), ""))
		}
		had, has := old.seenBy(before.Name), now.seenBy(before.Name)
		for _, name := range slices.Sorted(maps.Keys(had)) {
			tool, there := has[name]
			if !there {
				add(before.Name, change("tool/lost", name, "", "", ""))
				continue
			}
			key := string(encoded(had[name])) + "\x00" + string(encoded(tool))
			changes, known := compared[key]
			if !known {
				changes = compareTool(ctx, name, had[name], tool)
				compared[key] = changes
			}
			for _, c := range changes {
				add(before.Name, c)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(has)) {
			if _, there := had[name]; !there {
				add(before.Name, change("tool/gained", name, "", "", ""))
			}
		}
	}
	for _, after := range now.Callers {
		if _, both := old.of(after.Name); !both {
			add(after.Name, change("caller/not-compared", "", "", "", ""))
		}
	}
	slices.SortStableFunc(d.Changes, func(a, b Change) int {
		_, first := ruleOf(a.ID)
		_, second := ruleOf(b.ID)
		levels := []reports.Level{reports.MUST, reports.SHOULD, reports.MAY}
		return cmp.Or(slices.Index(levels, a.Level)-slices.Index(levels, b.Level), cmp.Compare(a.Tool, b.Tool), first-second)
	})
	return d
}

func change(rule, tool, at, old, now string) Change {
	r, _ := ruleOf(rule)
	return Change{Rule: r, Tool: tool, At: at, Old: old, New: now}
}

// hints are the annotations that clients act on, with what MCP says that holds without them.
var hints = []struct {
	name    string
	without bool
}{{"readOnlyHint", false}, {"destructiveHint", true}, {"idempotentHint", false}, {"openWorldHint", true}}

// compareTool classifies what differs in one tool.
func compareTool(ctx context.Context, name string, old, now map[string]any) []Change {
	var all []Change
	all = append(all, compareSchemas(ctx, name, "input", old["inputSchema"], now["inputSchema"])...)
	all = append(all, compareSchemas(ctx, name, "output", old["outputSchema"], now["outputSchema"])...)
	for _, text := range []string{"description", "title"} {
		if !exact.Equal(old[text], now[text]) {
			all = append(all, change("model/"+text, name, "", short(old[text]), short(now[text])))
		}
	}
	before, _ := old["annotations"].(map[string]any)
	after, _ := now["annotations"].(map[string]any)
	safety := map[string]bool{}
	for _, hint := range hints {
		safety[hint.name] = true
		was, is := hintOf(before, hint.name, hint.without), hintOf(after, hint.name, hint.without)
		if readOnly := hintOf(before, "readOnlyHint", false) && hintOf(after, "readOnlyHint", false); readOnly && hint.name != "readOnlyHint" && hint.name != "openWorldHint" {
			continue // of a tool that only reads, it means nothing
		}
		if was != is {
			all = append(all, change("model/safety", name, "/"+hint.name, fmt.Sprint(was), fmt.Sprint(is)))
		}
	}
	either := map[string]any{}
	maps.Copy(either, before)
	maps.Copy(either, after)
	for _, other := range slices.Sorted(maps.Keys(either)) {
		if !safety[other] && !exact.Equal(before[other], after[other]) {
			all = append(all, change("model/annotation", name, "/"+other, short(before[other]), short(after[other])))
		}
	}
	return all
}

func hintOf(annotations map[string]any, name string, without bool) bool {
	if value, is := annotations[name].(bool); is {
		return value
	}
	return without
}

// compareSchemas classifies what differs in the input or the output schema of a tool. A tool without an output schema
// promises nothing, so that any result is allowed.
func compareSchemas(ctx context.Context, tool, side string, old, now any) []Change {
	if exact.Equal(old, now) {
		return nil
	}
	if side == "output" {
		switch {
		case old == nil:
			return []Change{change("output/promised", tool, "", "", "")}
		case now == nil:
			return []Change{change("output/lost", tool, "", "", "")}
		}
	}
	from, to, other := told(old, 0), now, "input/wider"
	narrower := "input/narrower"
	if side == "output" {
		from, to, other, narrower = now, old, "output/narrower", "output/wider"
	}
	var all []Change
	if fault := invalid(now); fault != "" && invalid(old) == "" {
		all = append(all, change(side+"/invalid", tool, "", "", fault))
	}
	found, example, shown := compareValues(ctx, from, to)
	if len(found) == 0 && shown {
		found = []escape{{kind: "narrower"}}
	}
	if shown && slices.ContainsFunc(found, func(e escape) bool { return e.kind != unproved }) {
		found = slices.DeleteFunc(found, func(e escape) bool { return e.kind == unproved })
	}
	for i, e := range found {
		rule := side + "/" + e.kind
		if e.kind == "narrower" || e.kind == unproved && shown {
			rule = narrower
		}
		c := change(rule, tool, e.at, e.from, e.to)
		if side == "output" {
			c.Old, c.New = c.New, c.Old
		}
		if i == 0 && shown {
			c.Example = string(encoded(example))
		}
		all = append(all, c)
	}
	texts := compareTexts(tool, side, "", old, now, 0)
	if side == "input" && len(found) == 0 {
		texts = append(texts, ignored(tool, old, now)...)
	}
	all = append(all, texts...)
	if len(all) == 0 {
		wider := to
		if side == "input" {
			wider = told(now, 0)
		}
		if len(narrowing(ctx, wider, from)) == 0 {
			other = side + "/spelling"
		}
		all = append(all, change(other, tool, "", "", ""))
	}
	return all
}

// compareValues lists the ways in which a value that from takes may be refused by to, with an example where one is found.
func compareValues(ctx context.Context, from, to any) (found []escape, example any, shown bool) {
	for _, schema := range []any{from, to} {
		if err := jsonschema.Bounded(schema); err != nil {
			return []escape{{kind: unproved, to: "not compared: " + err.Error()}}, nil, false
		}
	}
	found = narrowing(ctx, from, to)
	tries := fewTried
	if len(found) > 0 {
		tries = mostTried
	}
	example, shown = witness(ctx, from, to, tries)
	return found, example, shown
}

// invalid says why a document is no schema: by the dialect that it declares, or else by any. A schema that is missing is another
// difference.
func invalid(schema any) (fault string) {
	if schema == nil || jsonschema.Bounded(schema) != nil { // which is not compared
		return ""
	}
	for _, dialect := range []jsonschema.Dialect{jsonschema.Draft4, jsonschema.Draft2020_12, jsonschema.Draft7} {
		if fault = jsonschema.Fault(schema, dialect); fault == "" {
			return ""
		}
	}
	return fault
}

// told is an input schema as callers are told it: where an object names its members and says nothing of others, callers send no
// others, and a validator that takes them anyway is no promise.
func told(schema any, level int) any {
	switch s := schema.(type) {
	case map[string]any:
		all := maps.Clone(s)
		for keyword, value := range s {
			if level > mostLevels || keyword == "enum" || keyword == "const" || keyword == "default" || keyword == "examples" {
				continue
			}
			if keyword == "properties" || keyword == "$defs" || keyword == "definitions" || keyword == "patternProperties" {
				if named, ok := value.(map[string]any); ok {
					inner := map[string]any{}
					for name, of := range named {
						inner[name] = told(of, level+1)
					}
					all[keyword] = inner
				}
				continue
			}
			all[keyword] = told(value, level+1)
		}
		_, combined := s["allOf"]
		if len(properties(s)) > 0 && s["additionalProperties"] == nil && s["patternProperties"] == nil && s["unevaluatedProperties"] == nil && s["anyOf"] == nil && s["oneOf"] == nil && !combined && level < mostLevels {
			all["additionalProperties"] = false
		}
		return all
	case []any:
		all := make([]any, len(s))
		for i, item := range s {
			all[i] = told(item, level+1)
		}
		return all
	}
	return schema
}

// ignored are the arguments that the new schema no longer names and still lets callers send.
func ignored(tool string, old, now any) []Change {
	before, _ := old.(map[string]any)
	after, _ := now.(map[string]any)
	var all []Change
	for _, name := range slices.Sorted(maps.Keys(properties(before))) {
		if _, named := properties(after)[name]; !named && properties(before)[name] != false {
			all = append(all, change("input/ignored", tool, "/"+name, "", ""))
		}
	}
	return all
}

// compareTexts looks for descriptions and defaults of arguments and members that both schemas name.
func compareTexts(tool, side, at string, old, now any, level int) []Change {
	before, ok := old.(map[string]any)
	after, too := now.(map[string]any)
	if !ok || !too || level > mostLevels {
		return nil
	}
	var all []Change
	for _, text := range []string{"title", "description"} {
		if !exact.Equal(before[text], after[text]) {
			all = append(all, change("model/argument", tool, at, short(before[text]), short(after[text])))
		}
	}
	if side == "input" && !exact.Equal(before["default"], after["default"]) {
		all = append(all, change("input/default", tool, at, short(before["default"]), short(after["default"])))
	}
	for _, name := range slices.Sorted(maps.Keys(properties(before))) {
		if other, there := properties(after)[name]; there {
			all = append(all, compareTexts(tool, side, at+"/"+name, properties(before)[name], other, level+1)...)
		}
	}
	return append(all, compareTexts(tool, side, at+"/*", before["items"], after["items"], level+1)...)
}

// Allow lets changes pass that an allow-list names by rule, tool and caller. It is a file as that of known failures, with
// rules in place of clauses. Entries that have expired by now, and those that match nothing, become problems.
func (d *Differences) Allow(f *baseline.File, now time.Time) {
	for _, e := range f.Entries {
		problem := ""
		switch until := e.Until.Format(time.DateOnly); {
		case !e.Until.IsZero() && now.UTC().Format(time.DateOnly) > until:
			problem = fmt.Sprintf("the entry expired on %s (%s): write the lock again, change the bridge, or give it a new date", until, e.Reason)
		case !d.allow(e):
			problem = "nothing differs as the entry says: remove it"
		}
		if problem != "" {
			d.Problems = append(d.Problems, reports.BaselineProblem{File: f.Path, Line: e.Line, Clause: e.Clause, Text: problem})
		}
	}
}

// matches reports whether an entry is about a change; it has to be about all callers of it, or name the only one.
func matches(e baseline.Entry, c Change) bool {
	if ok, err := path.Match(e.Clause, c.ID); err != nil || !ok || c.Level == reports.MAY {
		return false
	}
	if e.Tool != "" {
		if ok, err := path.Match(e.Tool, c.Tool); err != nil || !ok {
			return false
		}
	}
	return e.Identity == "" || slices.Equal(c.Callers, []string{e.Identity})
}

func (d *Differences) allow(e baseline.Entry) (used bool) {
	for i := range d.Changes {
		if matches(e, d.Changes[i]) {
			used = true
			d.Changes[i].Allowed = cmp.Or(d.Changes[i].Allowed, e.Reason)
		}
	}
	return used
}

// Fails reports whether a change fails the gate.
func (d *Differences) Fails(c Change) bool {
	return c.Allowed == "" && (c.Level == reports.MUST || d.Strict && c.Level == reports.SHOULD)
}

// ExitCode is 1 where a change fails the gate, or the allow-list does not hold; else 0.
func (d *Differences) ExitCode() int {
	if len(d.Problems) > 0 || slices.ContainsFunc(d.Changes, d.Fails) {
		return 1
	}
	return 0
}

// Headline is the outcome in one line.
func (d *Differences) Headline() string {
	counts := map[Class]int{}
	allowed := 0
	for _, c := range d.Changes {
		if c.Allowed != "" {
			allowed++
			continue
		}
		counts[c.Class]++
	}
	line := "the tools are the same"
	if len(d.Changes) > 0 {
		line = fmt.Sprintf("%d breaking for callers, %d for models, %d additive", counts[Callers], counts[Models], counts[Additive])
		if allowed > 0 {
			line += fmt.Sprintf(", %d allowed", allowed)
		}
	}
	if len(d.Problems) > 0 {
		line += fmt.Sprintf("; %d entries of the allow-list do not hold", len(d.Problems))
	}
	return line
}
