package match

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// StringsIn are all strings in a document, names of members too.
func StringsIn(v any) (all []string) {
	for v := range exact.Values(v) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case json.Number:
			all = append(all, string(v))
		case map[string]any:
			all = slices.AppendSeq(all, maps.Keys(v))
		}
	}
	return all
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
	return exact.MustParse(schema)
}
