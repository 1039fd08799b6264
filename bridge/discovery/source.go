package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// Source is where descriptions of a site's methods come from.
type Source interface {
	// Fetch asks the site as the caller. etag is that of the response before, "" where there is none.
	Fetch(ctx context.Context, who caller.Caller, etag string) (Response, error)
	// Read takes a response apart. An error means that the whole response is useless.
	Read(Response) (Description, error)
}

// Response is what the site gave, not yet read.
type Response struct {
	Documents [][]byte
	ETag      string
	Unchanged bool // what was known before still holds; Documents is empty
}

// Description is what a site says about its methods to one caller.
type Description struct {
	Methods     []Described
	Extension   bool // the site shows the McpTool attribute and who may discover
	MayDiscover bool // true where the site does not say
}

// Described is one method, or why its description could not be read.
type Described struct {
	Raw    []byte // the description's own bytes
	Method translate.Method
	Err    error
}

// JSONRPC discovers by GET /jsonrpc/methods, which the jsonrpc_discovery module serves. The site leaves out what the
// caller may not run.
type JSONRPC struct{ Site *upstream.Client }

// Fetch reads the whole list: the site has no pages.
func (s JSONRPC) Fetch(ctx context.Context, who caller.Caller, etag string) (Response, error) {
	doc, err := s.Site.Get(ctx, who, "/jsonrpc/methods", "", etag)
	if err != nil {
		return Response{}, err
	}
	if doc.Unchanged {
		return Response{Unchanged: true, ETag: etag}, nil
	}
	return Response{Documents: [][]byte{doc.Body}, ETag: doc.ETag}, nil
}

// Read reads {"data": [method, …], "meta": {"mcp": {"discovery": bool}}}.
func (JSONRPC) Read(a Response) (Description, error) {
	doc, err := parseEach(a.Documents[0], "data", translate.ReadMethod)
	if err != nil {
		return Description{}, fmt.Errorf("the site's list of methods: %w", err)
	}
	d := Description{Methods: doc.methods, MayDiscover: true}
	if meta, ok := doc.others["meta"]; ok {
		if mcp, ok := meta.Get("mcp"); ok {
			may, _ := mcp.Get("discovery")
			d.Extension, d.MayDiscover = true, may.IsTrue()
		}
	}
	d.Extension = d.Extension || slices.ContainsFunc(d.Methods, func(m Described) bool { return m.Method.Marked() })
	return d, nil
}

// Module discovers by the MCP module's own /mcp/tools/list, page by page. What it lists is exposed, and callers it
// refuses may not discover, nor call, for nothing is known of their tools. Calls still go to /jsonrpc, where every
// response has its id.
type Module struct{ Site *upstream.Client }

// maxPages bounds a module whose pages never end.
const maxPages = 2000

// Fetch reads all pages.
func (s Module) Fetch(ctx context.Context, who caller.Caller, _ string) (Response, error) {
	var a Response
	cursor, seen := "", map[string]bool{}
	for {
		query := ""
		if cursor != "" {
			query = "cursor=" + url.QueryEscape(cursor)
		}
		doc, err := s.Site.Get(ctx, who, "/mcp/tools/list", query, "")
		if err != nil {
			return Response{}, err
		}
		a.Documents = append(a.Documents, doc.Body)
		page, err := jsondoc.SplitLoosely(doc.Body)
		if err != nil {
			return Response{}, unreadable(fmt.Errorf("a page of the module's list is not JSON: %w", err))
		}
		next, _ := page.Get("nextCursor")
		cursor, _ = next.Text()
		if cursor == "" {
			return a, nil
		}
		if seen[cursor] || len(a.Documents) == maxPages {
			return Response{}, unreadable(errors.New("the module's pages do not end"))
		}
		seen[cursor] = true
	}
}

// Read reads the tools of all pages.
func (Module) Read(a Response) (Description, error) {
	d := Description{Extension: true, MayDiscover: true}
	for _, body := range a.Documents {
		page, err := parseEach(body, "tools", translate.ReadTool)
		if err != nil {
			return Description{}, fmt.Errorf("a page of the module's list: %w", err)
		}
		d.Methods = append(d.Methods, page.methods...)
	}
	return d, nil
}

// parsed is a document with a list of methods in it.
type parsed struct {
	methods []Described
	others  map[string]jsondoc.Value // the members beside the list
}

// parseEach reads a document whose member list holds methods. A method that cannot even be parsed costs itself only; a
// document of which anything else is broken is useless.
func parseEach(body []byte, list string, read func(jsondoc.Value) (translate.Method, error)) (parsed, error) {
	p := parsed{others: map[string]jsondoc.Value{}}
	doc, err := jsondoc.Parse(body)
	whole := err == nil
	if !whole {
		if doc, err = jsondoc.SplitLoosely(body); err != nil {
			return p, fmt.Errorf("it is not JSON: %w", err)
		}
	}
	methods, _ := doc.Get(list)
	if methods.Kind != jsondoc.Array {
		return p, fmt.Errorf("it has no %s array", list)
	}
	for _, m := range doc.Members {
		if !whole && m.Name != list {
			if m.Value, err = jsondoc.Parse(m.Value.Raw); err != nil {
				return p, fmt.Errorf("its member %q is not JSON: %w", m.Name, err)
			}
		}
		p.others[m.Name] = m.Value
	}
	if !whole {
		if methods, err = jsondoc.SplitLoosely(methods.Raw); err != nil {
			return p, fmt.Errorf("its %s are not JSON: %w", list, err)
		}
	}
	for _, item := range methods.Items {
		raw := item.Raw
		if !whole {
			if item, err = jsondoc.Parse(raw); err != nil {
				p.methods = append(p.methods, Described{raw, translate.Method{ID: idOf(raw)}, fmt.Errorf("its description is not JSON: %w", err)})
				continue
			}
		}
		m, err := read(item)
		p.methods = append(p.methods, Described{raw, m, err})
	}
	return p, nil
}

// idOf finds out what a broken description is about, for the diagnostics.
func idOf(raw []byte) string {
	v, err := jsondoc.SplitLoosely(raw)
	if err != nil {
		return ""
	}
	for _, name := range []string{"id", "name"} {
		if id, ok := v.Get(name); ok {
			text, _ := id.Text()
			return text
		}
	}
	return ""
}
