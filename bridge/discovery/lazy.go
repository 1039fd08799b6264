package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// descriptions is how many methods are described at one time.
const descriptions = 8

// shelf holds the tools of a set whose schemas are fetched when they are first needed. It lives as long as its set,
// which is no longer than the discovery TTL.
type shelf struct {
	site    *upstream.Client
	rules   Rules
	compile func(json.RawMessage) *schema.Lazy
	flights singleflight.Group

	mu    sync.Mutex
	tools map[string]*catalog.Tool // by name
	notes []translate.Diagnostic
}

// errUndescribed says that the site does not describe a method; the tool then takes what the site takes.
var errUndescribed = errors.New("the site does not describe the method")

// tool returns a tool with its schemas; stub is what the index says of it. Beside errUndescribed the stub is given.
func (s *shelf) tool(ctx context.Context, who caller.Caller, stub *catalog.Tool) (*catalog.Tool, error) {
	s.mu.Lock()
	t := s.tools[stub.Name]
	s.mu.Unlock()
	if t != nil {
		return t, nil
	}
	// Those who wait must not fail because the first of them goes away: the site's client bounds the time.
	v, err, _ := s.flights.Do(stub.Name, func() (any, error) { return s.fetch(context.WithoutCancel(ctx), who, stub) })
	t, _ = v.(*catalog.Tool)
	return t, err
}

// fetch asks the site for one method and keeps the tool that comes of it. A method that the site does not describe, or
// so that nothing can be made of it, has its place on a page already: there it stays, and takes what the site takes.
func (s *shelf) fetch(ctx context.Context, who caller.Caller, stub *catalog.Tool) (*catalog.Tool, error) {
	var doc []byte
	_, err := s.site.Get(ctx, who, "/jsonrpc/methods/"+url.PathEscape(stub.Method), "", "", func(in io.Reader) (err error) {
		if doc, err = io.ReadAll(io.LimitReader(in, maxMethod+1)); len(doc) > maxMethod {
			err = errors.New("a description of a method is too long")
		}
		return err
	})
	switch {
	case fault.Is(err, fault.UpstreamError, fault.AccessDenied):
		s.note(translate.Diagnostic{Method: stub.Method, Problem: "the site does not describe it; it takes anything"})
		return stub, errUndescribed // and is asked about again
	case err != nil:
		return nil, unreadable(err)
	}
	d, notes, err := s.describe(doc, stub.Method)
	if err != nil {
		notes = append(notes, translate.Diagnostic{Method: stub.Method, Problem: err.Error() + "; it takes anything"})
		d = stub.Definition
	}
	d.Name = stub.Name
	t := catalog.NewTool(d, s.compile)
	s.note(notes...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tools == nil {
		s.tools = map[string]*catalog.Tool{}
	}
	s.tools[stub.Name] = t
	return t, nil
}

// describe reads and translates the description of one method.
func (s *shelf) describe(doc []byte, id string) (d catalog.Definition, notes []translate.Diagnostic, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its description broke the translation: %v", p)
		}
	}()
	tree, err := jsondoc.Parse(doc)
	if err != nil {
		return d, nil, fmt.Errorf("its description is not JSON: %w", err)
	}
	method, err := translate.ReadMethod(tree)
	switch {
	case err != nil:
		return d, nil, err
	case method.ID != id:
		return d, nil, fmt.Errorf("the site described %.80q instead", method.ID)
	}
	return s.rules.Translator.Tool(method)
}

// note keeps diagnostics, each once.
func (s *shelf) note(notes ...translate.Diagnostic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range notes {
		if !slices.Contains(s.notes, n) {
			s.notes = append(s.notes, n)
		}
	}
}

// page returns a page with its tools' schemas. When the site describes none of several it is not well.
func (s *shelf) page(ctx context.Context, who caller.Caller, index *catalog.Page) (*catalog.Page, error) {
	tools := make([]*catalog.Tool, len(index.Tools))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(descriptions)
	var undescribed atomic.Int64
	for i, stub := range index.Tools {
		group.Go(func() (err error) {
			if tools[i], err = s.tool(ctx, who, stub); errors.Is(err, errUndescribed) {
				undescribed.Add(1)
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if n := undescribed.Load(); n > 1 && n == int64(len(tools)) {
		return nil, unreadable(errUndescribed)
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

// stub is a tool as far as the index says.
func (b *builder) stub(m translate.Method, name string) *catalog.Tool {
	description := cmp.Or(m.Usage, m.ID)
	return catalog.NewTool(catalog.Definition{Name: name, Method: m.ID, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}, b.compile)
}
