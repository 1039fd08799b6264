package invoke

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/check"
)

// unread are the keywords that Drupal's validator does not read.
var unread = []string{"propertyNames", "then", "else", "contains"}

// siteMayAccept reports whether Drupal's validator accepts arguments that break their schema as fault says (a keyword and
// a place), and the bridge leaves validation to the site; breaks says whether a value breaks what the validator reads of it.
func siteMayAccept(t *check.T, fault string, arguments any, breaks func(any) bool) bool {
	if t.Claims("eager-validation") {
		return false
	}
	keyword, _, _ := strings.Cut(fault, " ")
	if keyword == "$" || slices.Contains(unread, keyword) { // $ of its patterns is before a last line end, too
		return true
	}
	readings := phpReadings{numerals: keyword == "enum"}
	return slices.ContainsFunc(readings.of(arguments, 0), func(v any) bool { return !breaks(v) })
}

// phpReadings lists what PHP can take a JSON value for.
type phpReadings struct {
	numerals bool // a numeral as text equals the number, as in an enum
}

// of returns a value with one place of it read in another way: [] as {} and the reverse, a null member of a nested object
// as no member. depth is 0 for the arguments themselves.
func (p phpReadings) of(value any, depth int) []any {
	switch value := value.(type) {
	case map[string]any:
		var all []any
		if len(value) == 0 && depth > 0 {
			all = append(all, []any{})
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if value[name] == nil && depth > 0 {
				without := maps.Clone(value)
				delete(without, name)
				all = append(all, without)
			}
			for _, member := range p.of(value[name], depth+1) {
				changed := maps.Clone(value)
				changed[name] = member
				all = append(all, changed)
			}
		}
		return all
	case []any:
		var all []any
		if len(value) == 0 {
			all = append(all, map[string]any{})
		}
		for i := range value {
			for _, item := range p.of(value[i], depth+1) {
				changed := slices.Clone(value)
				changed[i] = item
				all = append(all, changed)
			}
		}
		return all
	case string:
		if p.numerals && numeral.MatchString(value) {
			return []any{json.Number(value)}
		}
	case json.Number:
		if p.numerals {
			return []any{string(value)}
		}
	}
	return nil
}

// numeral matches a text that is a number in JSON.
var numeral = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
