package schema

import (
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Rebase moves the local references of a schema that becomes part of a larger one, where it stands at base (#/a/b).
// An anchor needs no moving.
func Rebase(v jsondoc.Value, base string) jsondoc.Value {
	return Rewrite(v, func(v jsondoc.Value) jsondoc.Value {
		pointer, _ := v.Get("$ref")
		ref, _ := pointer.Text()
		if ref == "#" || strings.HasPrefix(ref, "#/") {
			return v.With("$ref", jsondoc.NewString(base+ref[1:]))
		}
		return v
	})
}
