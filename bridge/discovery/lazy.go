package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"bridgecheck/bridge/catalog"
	"bridgecheck/bridge/jsondoc"
	"bridgecheck/bridge/translate"
	"bridgecheck/bridge/upstream"
)

// descriptions is how many methods are described at one time.
const descriptions = 8

// shelf holds the tools of a set whose schemas are fetched when they are first needed. It lives as long as its set,
// which is no longer than the discovery TTL.
type shelf struct {
	site    *upstream.Client
	rules   Rules
	flights singleflight.Group

	mu    sync.Mutex
	tools map[string]*catalog.Tool // by name
	notes []translate.Diagnostic
}

// tool gives a tool with its schemas; stub is what the index says of it.
func (s *shelf) tool(ctx context.Context, who upstream.Caller, stub *catalog.Tool) (*catalog.Tool, error) {
	s.mu.Lock()
	t := s.tools[stub.Name]
	s.mu.Unlock()
	if t != nil {
		return t, nil
	}
	// Those who wait must not fail because the first of them goes away: the site's client bounds the time.
	v, err, _ := s.flights.Do(stub.Name, func() (any, error) { return s.fetch(context.WithoutCancel(ctx), who, stub) })
	if err != nil {
		return nil, err
	}
	return v.(*catalog.Tool), nil
}

// fetch asks the site for one method and keeps the tool that comes of it.
func (s *shelf) fetch(ctx context.Context, who upstream.Caller, stub *catalog.Tool) (*catalog.Tool, error) {
	doc, err := s.site.Get(ctx, who, "/jsonrpc/methods/"+url.PathEscape(stub.Method), "", "")
	if err != nil {
		return nil, unreadable(err)
	}
	tree, err := jsondoc.Parse(doc.Body)
	if err != nil {
		return nil, unreadable(err)
	}
	method, err := translate.ReadMethod(tree)
	if err != nil || method.ID != stub.Method {
		return nil, unreadable(fmt.Errorf("the site described %q when asked for %q: %v", method.ID, stub.Method, err))
	}
	d, notes, err := s.rules.Translator.Tool(method)
	if err != nil {
		// It has its place on a page already: there it stays, and takes what the site takes.
		notes = append(notes, translate.Diagnostic{Method: stub.Method, Problem: err.Error() + "; it takes anything"})
		d = stub.Definition
	}
	d.Name = stub.Name
	t := catalog.NewTool(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == nil {
		s.tools = map[string]*catalog.Tool{}
	}
	s.tools[stub.Name] = t
	s.notes = append(s.notes, notes...)
	return t, nil
}

// page gives a page with its tools' schemas.
func (s *shelf) page(ctx context.Context, who upstream.Caller, index *catalog.Page) (*catalog.Page, error) {
	tools := make([]*catalog.Tool, len(index.Tools))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(descriptions)
	for i, stub := range index.Tools {
		group.Go(func() (err error) {
			tools[i], err = s.tool(ctx, who, stub)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return index.With(tools), nil
}

// diagnostics is what was found out so far.
func (s *shelf) diagnostics() []translate.Diagnostic {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]translate.Diagnostic(nil), s.notes...)
}

// stub is a tool as far as the index tells.
func stub(m translate.Method, name string) *catalog.Tool {
	description := m.Usage
	if description == "" {
		description = m.ID
	}
	return catalog.NewTool(catalog.Definition{Name: name, Method: m.ID, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)})
}
