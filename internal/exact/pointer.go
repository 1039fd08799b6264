package exact

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// At is the JSON pointer of a member of the object at another.
func At(pointer, name string) string { return string(jsontext.Pointer(pointer).AppendToken(name)) }

// Lookup follows a JSON pointer through a parsed document; false where it leads nowhere.
func Lookup(v any, pointer string) (any, bool) {
	for token := range jsontext.Pointer(pointer).Tokens() {
		var found bool
		switch at := v.(type) {
		case map[string]any:
			v, found = at[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(at) {
				v, found = at[i], true
			}
		}
		if !found {
			return nil, false
		}
	}
	return v, true
}
