package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"bridgecheck/bridge/jsondoc"
	"bridgecheck/bridge/translate"
	"bridgecheck/bridge/upstream"
)

// Source is where descriptions of a site's methods come from.
type Source interface {
	// Fetch asks the site as the caller. etag is that of the answer before, "" where there is none.
	Fetch(ctx context.Context, who upstream.Caller, etag string) (Answer, error)
	// Read takes an answer apart. An error means that the whole answer is useless.
	Read(Answer) (Description, error)
}

// Answer is what the site gave, not yet read.
type Answer struct {
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
func (s JSONRPC) Fetch(ctx context.Context, who upstream.Caller, etag string) (Answer, error) {
	doc, err := s.Site.Get(ctx, who, "/jsonrpc/methods", "", etag)
	if err != nil {
		return Answer{}, err
	}
	if doc.Unchanged {
		return Answer{Unchanged: true, ETag: etag}, nil
	}
	return Answer{Documents: [][]byte{doc.Body}, ETag: doc.ETag}, nil
}

// Read reads {"data": [method, …], "meta": {"mcp": {"discovery": bool}}}.
func (JSONRPC) Read(a Answer) (Description, error) {
	doc, err := jsondoc.Parse(a.Documents[0])
	if err != nil {
		return Description{}, fmt.Errorf("the site's list of methods is not JSON: %w", err)
	}
	data, _ := doc.Get("data")
	if data.Kind != jsondoc.Array {
		return Description{}, errors.New("the site's list of methods has no data array")
	}
	d := Description{MayDiscover: true}
	if meta, ok := doc.Get("meta"); ok {
		if mcp, ok := meta.Get("mcp"); ok {
			may, _ := mcp.Get("discovery")
			d.Extension, d.MayDiscover = true, may.IsTrue()
		}
	}
	for _, item := range data.Items {
		m, err := translate.ReadMethod(item)
		d.Extension = d.Extension || m.Marked()
		d.Methods = append(d.Methods, Described{item.Raw, m, err})
	}
	return d, nil
}

// Module discovers by the MCP module's own /mcp/tools/list, page by page. What it lists is exposed, and whom it
// refuses may not discover, nor call, for nothing is known of their tools. Calls still go to /jsonrpc, where every
// answer has its id.
type Module struct{ Site *upstream.Client }

// maxPages bounds a module whose pages never end.
const maxPages = 2000

// Fetch reads all pages.
func (s Module) Fetch(ctx context.Context, who upstream.Caller, _ string) (Answer, error) {
	var a Answer
	cursor, seen := "", map[string]bool{}
	for {
		query := ""
		if cursor != "" {
			query = "cursor=" + url.QueryEscape(cursor)
		}
		doc, err := s.Site.Get(ctx, who, "/mcp/tools/list", query, "")
		if err != nil {
			return Answer{}, err
		}
		a.Documents = append(a.Documents, doc.Body)
		page, err := jsondoc.Split(doc.Body)
		if err != nil {
			return Answer{}, unreadable(fmt.Errorf("a page of the module's list is not JSON: %w", err))
		}
		next, _ := page.Get("nextCursor")
		cursor, _ = next.Text()
		if cursor == "" {
			return a, nil
		}
		if seen[cursor] || len(a.Documents) == maxPages {
			return Answer{}, unreadable(errors.New("the module's pages do not end"))
		}
		seen[cursor] = true
	}
}

// Read reads the tools of all pages.
func (Module) Read(a Answer) (Description, error) {
	d := Description{Extension: true, MayDiscover: true}
	for _, body := range a.Documents {
		page, err := jsondoc.Parse(body)
		if err != nil {
			return Description{}, fmt.Errorf("a page of the module's list is not JSON: %w", err)
		}
		tools, _ := page.Get("tools")
		if tools.Kind != jsondoc.Array {
			return Description{}, errors.New("a page of the module's list has no tools array")
		}
		for _, item := range tools.Items {
			m, err := translate.ReadTool(item)
			d.Methods = append(d.Methods, Described{item.Raw, m, err})
		}
	}
	return d, nil
}
