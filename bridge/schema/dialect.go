package schema

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/xeipuuv/gojsonschema"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// dialect is a version of JSON Schema.
type dialect struct {
	address string             // as both libraries know it
	recent  bool               // from 2019-09 on
	draft   gojsonschema.Draft // of those before
	meta    func() (*gojsonschema.Schema, error)
}

// dialects are all that are read, by what $schema says after the scheme.
var dialects = func() map[string]dialect {
	known := map[string]dialect{}
	for path, draft := range map[string]gojsonschema.Draft{
		"json-schema.org/draft-04/schema": gojsonschema.Draft4, "json-schema.org/draft-06/schema": gojsonschema.Draft6, draft7: gojsonschema.Draft7,
	} {
		address := "http://" + path + "#"
		known[path] = dialect{address: address, draft: draft, meta: sync.OnceValues(func() (*gojsonschema.Schema, error) {
			return olderLoader(draft).Compile(gojsonschema.NewReferenceLoader(address)) // which the library has in it
		})}
	}
	for _, path := range []string{"json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema"} {
		known[path] = dialect{address: "https://" + path, recent: true}
	}
	return known
}()

const draft7 = "json-schema.org/draft-07/schema"

// dialectOf is the dialect that a schema declares, Draft 7 where it declares none, as Drupal means it. known is false for
// any other, which nobody fetches.
func dialectOf(v jsondoc.Value) (d dialect, known bool) {
	declared, ok := v.Get("$schema")
	if !ok {
		return dialects[draft7], true
	}
	text, _ := declared.Text()
	return dialectNamed(text)
}

func dialectNamed(text string) (d dialect, known bool) {
	scheme, path, _ := strings.Cut(strings.TrimSuffix(text, "#"), "://")
	d, known = dialects[path]
	return d, known && (scheme == "http" || scheme == "https")
}

// Dialect returns the address of a dialect as validators know it, however a $schema spells it; "" for one that is none of
// Draft 4, 6, 7, 2019-09 and 2020-12.
func Dialect(declared string) (address string) {
	if d, known := dialectNamed(declared); known {
		return d.address
	}
	return ""
}

// Recent reports whether a schema declares a dialect from 2019-09 on.
func Recent(v jsondoc.Value) bool {
	d, known := dialectOf(v)
	return known && d.recent
}

// readable is a schema as a library compiles it: with no $schema but that of the whole, by an address that the library
// has in it, and without patterns that Go cannot express.
func readable(root jsondoc.Value, d dialect) jsondoc.Value {
	if root.Kind != jsondoc.Object {
		return root
	}
	plain := Rewrite(withoutForeignPatterns(root), func(v jsondoc.Value) jsondoc.Value {
		if _, declares := v.Get("$schema"); declares {
			return v.Without("$schema")
		}
		return v
	})
	return plain.With("$schema", jsondoc.NewString(d.address))
}

func compileOlder(tree any, d dialect) (*gojsonschema.Schema, error) {
	meta, err := d.meta()
	if err != nil {
		return nil, err
	}
	result, err := meta.Validate(gojsonschema.NewRawLoader(tree))
	if err != nil {
		return nil, err
	}
	var faults []string
	for _, fault := range result.Errors() {
		faults = append(faults, fault.String())
	}
	if len(faults) > 0 {
		return nil, errors.New(strings.Join(faults, "\n"))
	}
	return olderLoader(d.draft).Compile(offline{gojsonschema.NewRawLoader(tree)})
}

func olderLoader(draft gojsonschema.Draft) *gojsonschema.SchemaLoader {
	loader := gojsonschema.NewSchemaLoader()
	loader.Draft, loader.AutoDetect = draft, false
	return loader
}

// offline is a schema for which the library fetches nothing.
type offline struct{ gojsonschema.JSONLoader }

// LoaderFactory returns what would load other documents.
func (offline) LoaderFactory() gojsonschema.JSONLoaderFactory { return nothing{} }

type nothing struct{}

// New returns a document that cannot be loaded.
func (nothing) New(source string) gojsonschema.JSONLoader {
	return missing{gojsonschema.NewReferenceLoader(source), source}
}

type missing struct {
	gojsonschema.JSONLoader
	source string
}

// LoadJSON is called for what is not in the schema itself.
func (m missing) LoadJSON() (any, error) {
	return nil, fmt.Errorf("the schema needs another document: %s", m.source)
}
