package mockdrupal

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// discoveryCache keeps the encoded method collections of one snapshot, one for each set of visible methods, address and ending.
type discoveryCache struct {
	mu   sync.Mutex
	docs map[discoveryKey]*discoveryDoc
}

type discoveryKey struct{ visible, base, tail string }

type discoveryDoc struct {
	once sync.Once
	data []byte // {"data":[…],"links":{…}…}; responses share it, and whoever changes one copies it
}

// maxDiscoveryDocs bounds the cache, because callers choose the address.
const maxDiscoveryDocs = 64

func (c *discoveryCache) get(key discoveryKey, encode func() []byte) []byte {
	c.mu.Lock()
	doc := c.docs[key]
	if doc == nil {
		if c.docs == nil || len(c.docs) >= maxDiscoveryDocs {
			c.docs = map[discoveryKey]*discoveryDoc{}
		}
		doc = &discoveryDoc{}
		c.docs[key] = doc
	}
	c.mu.Unlock()
	doc.once.Do(func() { doc.data = encode() })
	return doc.data
}

// methods is GET /jsonrpc/methods.
func (x *request) methods(map[string]string) *Response {
	if a := x.guard(discoverySchemes(x.state.site), fixtures.UseJSONRPC); a != nil {
		return a
	}
	return x.d.cache.keep(x, x.collection)
}

func (x *request) collection() *Response {
	visible, base := x.state.visible(x.caller), x.base()
	if x.state.unlinkable(visible) {
		return x.unexpected()
	}
	tail := "}"
	if x.state.site.Extensions {
		tail = `,"meta":{"mcp":{"discovery":false}}}`
		if x.state.holds(x.caller, fixtures.DiscoverTools) {
			tail = `,"meta":{"mcp":{"discovery":true}}}`
		}
	}
	doc := x.state.docs.get(discoveryKey{visible, base, tail}, func() []byte { return x.state.collection(visible, base, tail) })
	return exchange.NewResponse(http.StatusOK, exchange.JSONType, doc)
}

// unlinkable reports whether a visible method has a slash in its id: Drupal cannot make a link to it and fails.
func (s *snapshot) unlinkable(visible string) bool {
	return slices.ContainsFunc(s.slashed, func(m *method) bool { return visible[m.class] == '1' })
}

func (s *snapshot) collection(visible, base, tail string) []byte {
	var documents [][]byte
	size := 0
	for _, m := range s.order {
		if visible[m.class] == '1' {
			document := m.document(s.site, base)
			documents, size = append(documents, document), size+len(document)+1
		}
	}
	b := append(make([]byte, 0, size+len(base)+len(tail)+64), `{"data":[`...)
	for i, document := range documents {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, document...)
	}
	b = php.AppendString(append(b, `],"links":{"self":`...), base+"/jsonrpc/methods")
	return append(append(b, '}'), tail...)
}

// method is GET /jsonrpc/methods/{id}: what the collection holds of it, or 404 for all that the caller may not run.
func (x *request) method(vars map[string]string) *Response {
	if a := x.guard(discoverySchemes(x.state.site), fixtures.UseJSONRPC); a != nil {
		return a
	}
	id := vars["id"]
	m, ok := x.state.methods[id]
	if !ok || x.state.lacks(x.caller, m) != "" {
		return x.notFound("The " + id + " method is not available.")
	}
	return exchange.NewResponse(http.StatusOK, exchange.JSONType, m.document(x.state.site, x.base()))
}

// document is the method as the jsonrpc_discovery module normalises it.
func (m *method) document(site *fixtures.Site, base string) []byte {
	if shown := m.shown.Load(); shown != nil && shown.base == base && shown.extensions == site.Extensions {
		return shown.document
	}
	shown := &shownMethod{base, site.Extensions, m.normalise(site, base)}
	m.shown.Store(shown)
	return shown.document
}

// normalise makes the document. What is empty is left out.
func (m *method) normalise(site *fixtures.Site, base string) []byte {
	attributes := &php.Array{}
	set := func(name string, v php.Value) {
		if php.Truthy(v) {
			attributes.Set(php.KeyOf(name), v)
		}
	}
	set("usage", m.Usage)
	set("params", m.parameterList())
	if len(m.ResponseHeaders) > 0 {
		headers := &php.Array{}
		for _, name := range slices.Sorted(maps.Keys(m.ResponseHeaders)) {
			headers.Set(php.KeyOf(name), m.ResponseHeaders[name])
		}
		set("responseHeaders", headers)
	}
	set("output", schemaValue(m.Output))
	if site.Extensions && m.MCP != nil {
		set("mcpTool", m.toolAttribute())
	}
	collection := base + "/jsonrpc/methods"
	doc, err := php.Encode(php.Map(
		php.Pair{Name: "type", Value: "JsonRpcMethod"},
		php.Pair{Name: "id", Value: m.ID},
		php.Pair{Name: "attributes", Value: attributes},
		php.Pair{Name: "links", Value: php.Map(
			php.Pair{Name: "self", Value: collection + "/" + pathSegment(m.ID)},
			php.Pair{Name: "collection", Value: collection},
		)},
	))
	if err != nil { // a schema deeper than PHP encodes
		return []byte(`{"type":"JsonRpcMethod","id":` + string(php.AppendString(nil, m.ID)) + `}`)
	}
	return doc
}

func (m *method) parameterList() *php.Array {
	list := &php.Array{}
	for _, p := range m.parameters() {
		attributes := &php.Array{}
		set := func(name string, v php.Value) {
			if php.Truthy(v) {
				attributes.Set(php.KeyOf(name), v)
			}
		}
		if p.Factory == "" || p.Schema != nil {
			set("schema", p.schema)
		}
		set("description", p.Description)
		if p.Factory != "" {
			set("factory", p.FactoryClass())
		}
		set("required", p.Required)
		var id php.Value = p.Name
		if p.key.IsInt {
			id = p.key.Int
		}
		list.Set(p.key, php.Map(
			php.Pair{Name: "type", Value: "JsonRpcParameterDefinition"},
			php.Pair{Name: "id", Value: id},
			php.Pair{Name: "attributes", Value: attributes},
			php.Pair{Name: "schema", Value: p.schema},
		))
	}
	return list
}

// toolAttribute is the extension that shows a bridge outside of Drupal which methods are tools.
func (m *method) toolAttribute() php.Value {
	tool := php.Object{Array: &php.Array{}}
	if m.MCP.Title != "" {
		tool.Set(php.KeyOf("title"), m.MCP.Title)
	}
	if m.MCP.Annotations != nil {
		tool.Set(php.KeyOf("annotations"), php.Literal(m.MCP.Annotations))
	}
	return tool
}

// schemaValue is a schema as PHP has it, where {} is []. One that PHP cannot read is shown unchanged.
func schemaValue(raw fixtures.Raw) php.Value {
	if raw == nil {
		return nil
	}
	v, err := php.Decode(raw)
	if err != nil {
		return php.Literal(raw)
	}
	return v
}

// pathSegment escapes an id in a link as Drupal's URL generator does.
func pathSegment(id string) string {
	return strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(id))
}
