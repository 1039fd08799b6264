package schema

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/internal/applicator"
)

// isSchema says what can be a schema: an object, or from Draft 6 on true or false.
func isSchema(v jsondoc.Value) bool { return v.Kind == jsondoc.Object || v.Kind == jsondoc.Boolean }

// child is a schema within a schema.
type child struct {
	pointer string // below the parent, as in /properties/name
	schema  jsondoc.Value
	within  bool
	keyword string
	name    string // of the property or the definition; "" where the keyword's value is no object of schemas
	index   int    // in the keyword's list; -1: it is no list
}

// children returns the schemas that stand directly within v.
func children(v jsondoc.Value) []child {
	var found []child
	for _, m := range v.Members {
		k, ok := applicator.Keywords[m.Name]
		if !ok {
			continue
		}
		at, within := "/"+m.Name, !k.InPlace
		switch {
		case (k.Holds == applicator.One || k.Holds == applicator.OneOrList) && isSchema(m.Value):
			found = append(found, child{at, m.Value, within, m.Name, "", -1})
		case (k.Holds == applicator.List || k.Holds == applicator.OneOrList) && m.Value.Kind == jsondoc.Array:
			for i, item := range m.Value.Items {
				if isSchema(item) {
					found = append(found, child{at + "/" + strconv.Itoa(i), item, within, m.Name, "", i})
				}
			}
		case k.Holds == applicator.Named || k.Holds == applicator.NamedOrNames:
			for _, n := range m.Value.Members {
				if isSchema(n.Value) {
					found = append(found, child{below(at, n.Name), n.Value, within, m.Name, n.Name, -1})
				}
			}
		}
	}
	return found
}

// Rewrite returns a copy of a schema in which edit was applied to whatever stands where a schema should stand within it,
// innermost first, and then to itself. Values of const, enum, default and examples are data, and stay.
func Rewrite(v jsondoc.Value, edit func(jsondoc.Value) jsondoc.Value) jsondoc.Value {
	if v.Kind != jsondoc.Object {
		return edit(v)
	}
	members := make([]jsondoc.Member, len(v.Members))
	for i, m := range v.Members {
		if k, ok := applicator.Keywords[m.Name]; ok {
			m.Value = rewriteIn(k.Holds, m.Value, edit)
		}
		members[i] = m
	}
	return edit(jsondoc.NewObject(members...))
}

func rewriteIn(p applicator.Holds, v jsondoc.Value, edit func(jsondoc.Value) jsondoc.Value) jsondoc.Value {
	switch {
	case p == applicator.One, p == applicator.OneOrList && (v.Kind != jsondoc.Array || len(v.Items) == 0):
		return Rewrite(v, edit)
	case p == applicator.List && v.Kind == jsondoc.Array, p == applicator.OneOrList:
		items := make([]jsondoc.Value, len(v.Items))
		for i, item := range v.Items {
			items[i] = Rewrite(item, edit)
		}
		return jsondoc.NewArray(items...)
	case p == applicator.Named || p == applicator.NamedOrNames:
		members := namedMembers(v)
		for i, m := range members {
			if p == applicator.Named || m.Value.Kind != jsondoc.Array || len(m.Value.Items) == 0 {
				members[i].Value = Rewrite(m.Value, edit)
			}
		}
		if v.Kind == jsondoc.Object || v.Kind == jsondoc.Array {
			return jsondoc.NewObject(members...)
		}
	}
	return v
}

// namedMembers returns an object's members. PHP writes an object as a list when it is empty, or when its names happen to
// be 0, 1, 2, …
func namedMembers(v jsondoc.Value) []jsondoc.Member {
	members := append([]jsondoc.Member(nil), v.Members...)
	for i, item := range v.Items {
		members = append(members, jsondoc.Member{Name: strconv.Itoa(i), Value: item})
	}
	return members
}

// below is the JSON pointer of a member of the object at another.
func below(pointer, name string) string { return string(jsontext.Pointer(pointer).AppendToken(name)) }
