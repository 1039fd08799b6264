package discovery

import (
	"context"
	"fmt"
	"slices"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
)

// Shown is what becomes of one method of the site for a caller.
type Shown struct {
	Method string `json:"method"`
	Tool   string `json:"tool,omitempty"` // the name of the tool; empty: it is none
	Why    string `json:"why,omitempty"`  // it is no tool
}

// Explanation is what a caller is shown, and why not.
type Explanation struct {
	Methods     []Shown `json:"methods"`           // in the site's order
	Nothing     string  `json:"nothing,omitempty"` // why none of them is a tool; empty: one is, or the site has no method
	MayDiscover bool    `json:"may_discover"`      // may list and describe
}

// Explain asks the site as the caller and says of each method what becomes of it.
func (e *Engine) Explain(ctx context.Context, who caller.Caller) (*Explanation, error) {
	response, err := e.o.Source.Fetch(ctx, who, "")
	if err != nil {
		return nil, err
	}
	defer response.done()
	d, err := e.o.Source.Read(response)
	if err != nil {
		return nil, err
	}
	x := &Explanation{MayDiscover: d.MayDiscover, Methods: []Shown{}}
	s, err := e.builder.assemble(ctx, d, nil)
	if err != nil {
		return nil, err
	}
	tools := map[string]string{}
	for _, tool := range s.catalog.Tools() {
		tools[tool.Method] = tool.Name
	}
	for _, m := range d.Methods {
		shown := Shown{Method: m.ID, Why: e.builder.picker.why(d, m)}
		quarantined := func(n translate.Diagnostic) bool { return n.Quarantined && n.Method == fault.Brief(m.ID) }
		if i := slices.IndexFunc(s.diagnostics, quarantined); i >= 0 && (shown.Why == "" || m.Err != nil) {
			shown.Why = s.diagnostics[i].Problem
		}
		if shown.Why == "" {
			shown.Tool = tools[m.ID]
		}
		x.Methods = append(x.Methods, shown)
	}
	x.Nothing = s.nothing
	return x, nil
}

// why says why a method is no tool by the rules; "" where it is one.
func (p picker) why(d Description, m Described) string {
	if p.exposed(d, m) {
		return ""
	}
	patterns := p.patterns(d)
	switch {
	case p.byAttribute(d) && !m.Marked:
		return "it has no McpTool attribute"
	case !patterns.Includes(m.ID):
		return "no pattern of include matches it"
	case !patterns.Match(m.ID):
		return "a pattern of exclude matches it"
	}
	return "it may change the site, and the bridge is read-only"
}

// nothing says why no method of a description is a tool; "" where one is, or where there is no method.
func (p picker) nothing(d Description) string {
	total, marked, included, matched := len(d.Methods), 0, 0, 0
	patterns := p.patterns(d)
	for _, m := range d.Methods {
		switch {
		case p.exposed(d, m):
			return ""
		case p.byAttribute(d) && !m.Marked:
			continue
		}
		marked++
		if patterns.Includes(m.ID) {
			included++
		}
		if patterns.Match(m.ID) {
			matched++
		}
	}
	switch {
	case total == 0:
		return ""
	case marked == 0:
		return fmt.Sprintf("%d methods, 0 with the McpTool attribute; see --expose", total)
	case included == 0:
		return fmt.Sprintf("%d methods, 0 match include; see --include", total)
	case matched == 0:
		return fmt.Sprintf("%d methods, %d match include, and exclude takes them all; see --exclude", total, included)
	}
	return fmt.Sprintf("%d methods, %d match include, and none only reads; see --read-only", total, matched)
}

// Nothing says why no caller has a tool; "" where one has, or where nobody has called.
func (e *Engine) Nothing() string {
	why := ""
	for _, s := range e.builder.sets.all() {
		if s.nothing == "" {
			return ""
		}
		if len(s.nothing) > len(why) { // that of the caller who sees most methods, by and large
			why = s.nothing
		}
	}
	return why
}
