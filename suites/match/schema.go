package match

import (
	"encoding/json"
	"fmt"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// StringsIn are all strings in a document, names of members too.
func StringsIn(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case json.Number:
		return []string{string(v)}
	case map[string]any:
		var all []string
		for name, member := range check.InOrder(v) {
			all = append(append(all, name), StringsIn(member)...)
		}
		return all
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, StringsIn(item)...)
		}
		return all
	}
	return nil
}

// DescribeMember says what a tool has in a member, for messages.
func DescribeMember(t check.Tool, member string) string {
	v, there := t[member]
	if !there {
		return "no `" + member + "`"
	}
	return fmt.Sprintf("the `%s` %s", member, exact.Short(v))
}

// Published is a schema of the site as a parsed document; a parameter without one takes anything.
func Published(schema fixtures.Raw) any {
	if len(schema) == 0 {
		return map[string]any{}
	}
	v, err := exact.Parse(schema)
	if err != nil {
		panic(fmt.Sprintf("a schema of the mock's site cannot be read: %v", err))
	}
	return v
}
