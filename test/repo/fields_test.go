package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// maxFields is how many fields a type may have: one that has more holds several ideas, which are types of their own.
const maxFields = 25

func TestNoTypeHasTooManyFields(t *testing.T) {
	for _, s := range sources(t) {
		file := must.Get(parser.ParseFile(token.NewFileSet(), s.Name, read(t, s.Name), 0))(t)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok && fields.Fields.NumFields() > maxFields {
				t.Errorf("%s: %s has %d fields, want %d at most: group those that belong together", s.Name, spec.Name.Name, fields.Fields.NumFields(), maxFields)
			}
			return true
		})
	}
}
