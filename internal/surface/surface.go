// Package surface holds what callers see of a bridge's tools: names, descriptions, schemas and annotations, per caller, as a
// file that a team reviews, and classifies the differences of two surfaces as breaking for callers, breaking for models, or
// additive. It asks no bridge: whoever calls it brings the tools. The rules are data (rules.yaml), each with its reason. Its
// invariant: what cannot be shown to be harmless is classified as breaking.
package surface

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Version is the version of the layout of a lock file.
const Version = "1"

// Surface is what callers see of the tools of a bridge.
type Surface struct {
	Callers []Caller
	Tools   []Tool // sorted by name; a tool that callers see differently is there several times
}

// Caller is who was asked for the tools. A caller whom the bridge refuses sees none.
type Caller struct {
	Name    string `json:"name"`
	Refused int    `json:"refused,omitempty"` // HTTP status; 0: the caller was shown a list, which may be empty
}

// Tool is one tool as some callers see it.
type Tool struct {
	Callers []string
	Shown   map[string]any // as listed, in the form of package exact, without what is no part of the surface
}

// Name is the tool's name.
func (t Tool) Name() string {
	name, _ := t.Shown["name"].(string)
	return name
}

// members are what of a tool belongs to its surface.
var members = []string{"name", "title", "description", "annotations", "inputSchema", "outputSchema"}

// Add adds the tools that a caller is shown. A caller is added once.
func (s *Surface) Add(caller Caller, tools []map[string]any) {
	at, _ := slices.BinarySearchFunc(s.Callers, caller.Name, func(c Caller, name string) int { return strings.Compare(c.Name, name) })
	s.Callers = slices.Insert(s.Callers, at, caller)
	named := map[string][]int{} // places in s.Tools
	for i, t := range s.Tools {
		named[t.Name()] = append(named[t.Name()], i)
	}
	for _, listed := range tools {
		shown := map[string]any{}
		for _, name := range members {
			if value, there := listed[name]; there {
				shown[name] = value
			}
		}
		name := Tool{Shown: shown}.Name()
		at := slices.IndexFunc(named[name], func(i int) bool { return exact.Equal(s.Tools[i].Shown, shown) })
		if at < 0 {
			at = len(named[name])
			named[name] = append(named[name], len(s.Tools))
			s.Tools = append(s.Tools, Tool{Shown: shown})
		}
		i := named[name][at]
		if !slices.Contains(s.Tools[i].Callers, caller.Name) {
			s.Tools[i].Callers = append(s.Tools[i].Callers, caller.Name)
		}
	}
	for _, t := range s.Tools {
		slices.Sort(t.Callers)
	}
	slices.SortStableFunc(s.Tools, func(a, b Tool) int {
		if by := strings.Compare(a.Name(), b.Name()); by != 0 {
			return by
		}
		return slices.Compare(a.Callers, b.Callers)
	})
}

// of is the caller of a name; false: nobody asked as that one.
func (s *Surface) of(name string) (Caller, bool) {
	i := slices.IndexFunc(s.Callers, func(c Caller) bool { return c.Name == name })
	if i < 0 {
		return Caller{}, false
	}
	return s.Callers[i], true
}

// seenBy are the tools that a caller is shown, by name.
func (s *Surface) seenBy(caller string) map[string]map[string]any {
	seen := map[string]map[string]any{}
	for _, t := range s.Tools {
		if slices.Contains(t.Callers, caller) {
			seen[t.Name()] = t.Shown
		}
	}
	return seen
}

// lock is the file's layout. Members of objects are sorted by name, so that the same surface is the same file.
type lock struct {
	Version string   `json:"tools_lock"`
	Callers []Caller `json:"callers"`
	Tools   []locked `json:"tools"`
}

// locked is a tool in a lock file.
type locked struct {
	Callers []string       `json:"callers"`
	Tool    map[string]any `json:"tool"`
}

// Lock is the surface as a lock file. Numbers stand there as the bridge wrote them.
func (s *Surface) Lock() ([]byte, error) {
	file := lock{Version: Version, Callers: s.Callers, Tools: []locked{}}
	for _, t := range s.Tools {
		if !nestedWithin(t.Shown, deepest) {
			return nil, fmt.Errorf("write the lock: the tool %.80q is nested deeper than %d levels", t.Name(), deepest)
		}
		file.Tools = append(file.Tools, locked{t.Callers, t.Shown})
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(file); err != nil {
		return nil, fmt.Errorf("write the lock: %w", err)
	}
	return b.Bytes(), nil
}

// deepest is how deep a lock nests: each line is indented, so that thousands of levels take hundreds of megabytes.
const deepest = 200

func nestedWithin(v any, levels int) bool {
	var inner []any
	switch v := v.(type) {
	case map[string]any:
		inner = slices.Collect(maps.Values(v))
	case []any:
		inner = v
	default:
		return true
	}
	return levels > 0 && !slices.ContainsFunc(inner, func(v any) bool { return !nestedWithin(v, levels-1) })
}
