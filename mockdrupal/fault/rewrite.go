package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// members changes the members of every response object in the body.
func members(change func([]php.Member) []php.Member) func(*action) {
	return rewrite(func(body []byte) []byte {
		if elements := php.Elements(body); elements != nil {
			for i, e := range elements {
				elements[i] = object(change(php.Members(e)))
			}
			return list(elements)
		}
		if found := php.Members(body); found != nil {
			return object(change(found))
		}
		return body
	})
}

func object(members []php.Member) []byte {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(php.AppendString(b, m.Name), ':'), m.Raw...)
	}
	return append(b, '}')
}

func list(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']')
}

func without(names ...string) func([]php.Member) []php.Member {
	return func(m []php.Member) []php.Member {
		return slices.DeleteFunc(m, func(m php.Member) bool { return slices.Contains(names, m.Name) })
	}
}

func withID(change func([]byte) []byte) func([]php.Member) []php.Member {
	return func(m []php.Member) []php.Member {
		for i := range m {
			if m[i].Name == "id" {
				m[i].Raw = change(m[i].Raw)
			}
		}
		return m
	}
}

// wrongID is another id of the same type.
func wrongID(id []byte) []byte {
	if len(id) > 0 && id[0] == '"' {
		return []byte(`"not-` + string(id[1:]))
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return strconv.AppendInt(nil, n+1, 10)
	}
	return []byte("424242")
}

// is returns the same id whatever the request's is.
func is(id string) func([]byte) []byte { return func([]byte) []byte { return []byte(id) } }

func otherType(id []byte) []byte {
	if len(id) > 0 && id[0] == '"' {
		return []byte("424242")
	}
	return []byte(strconv.Quote(string(id)))
}

func both(m []php.Member) []php.Member {
	has := func(name string) bool {
		return slices.ContainsFunc(m, func(m php.Member) bool { return m.Name == name })
	}
	if !has("error") {
		m = append(m, php.Member{Name: "error", Raw: []byte(`{"code":-32603,"message":"Internal Error","data":null}`)})
	}
	if !has("result") {
		m = append(m, php.Member{Name: "result", Raw: []byte(`"result beside an error"`)})
	}
	return m
}

// batchForSingle swaps a response and a list of one.
func batchForSingle(body []byte) []byte {
	if elements := php.Elements(body); len(elements) > 0 {
		return elements[0]
	}
	return list([][]byte{body})
}

// invalidUTF8 breaks the last string of the body.
func invalidUTF8(body []byte) []byte {
	if at := bytes.LastIndexByte(body, '"'); at >= 0 {
		return slices.Insert(body, at, 0xff, 0xfe)
	}
	return append(body, 0xff)
}

// poisonID is the id of the method that the poison faults add.
const poisonID = "poison.method"

// poison adds a method to the collection, in the middle, so that both its neighbours show what becomes of them.
func poison(attributes string) func(*action) { return poisonAs(poisonID, attributes) }

func poisonAs(id, attributes string) func(*action) {
	method := `{"type":"JsonRpcMethod","id":"` + id + `",` + attributes + `,"links":{}}`
	return collection(func(methods [][]byte) [][]byte { return slices.Insert(methods, len(methods)/2, []byte(method)) })
}

func poisonedParam(schema string) string {
	return `"attributes":{"usage":"Poisoned","params":{"p":{"type":"JsonRpcParameterDefinition","id":"p","attributes":{"schema":` +
		schema + `},"schema":` + schema + `}},"mcpTool":{"title":"Poisoned"}}`
}

func remoteRef(v *action) {
	location := cmp.Or(v.fault.Location, elsewhere)
	for i, schema := range []map[string]string{{"$ref": location}, {"$schema": location}, {"$id": location, "$ref": "other.json"}} {
		text, _ := json.Marshal(schema) // strings only
		poisonAs(poisonID+strings.Repeat("+", i), poisonedParam(string(text)))(v)
	}
	link, _ := json.Marshal(map[string]string{"href": location})
	rewrite(func(body []byte) []byte { // the last links are those of the collection
		const links = `"links":{`
		at := bytes.LastIndex(body, []byte(links)) + len(links)
		return slices.Insert(body, at, []byte(`"next":`+string(link)+`,`)...)
	})(v)
}

func duplicateFirst(body []byte) []byte {
	return changeCollection(body, func(methods [][]byte) [][]byte {
		if len(methods) == 0 {
			return methods
		}
		return append(methods, methods[0])
	})
}

// collection changes the list of methods in GET /jsonrpc/methods, and leaves any other response alone.
func collection(change func([][]byte) [][]byte) func(*action) {
	return rewrite(func(body []byte) []byte { return changeCollection(body, change) })
}

func changeCollection(body []byte, change func([][]byte) [][]byte) []byte {
	found := php.Members(body)
	for i, m := range found {
		if methods := php.Elements(m.Raw); m.Name == "data" && methods != nil {
			found[i].Raw = list(change(methods))
			return object(found)
		}
	}
	return body
}
