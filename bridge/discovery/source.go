package discovery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// What one response of the site may cost. A list of which more arrives is read to its end, for what follows it says what the
// caller may do, and the methods beyond are left out.
const (
	maxMethods = 100_000
	maxHeld    = 32 << 20 // bytes of all methods
	maxMethod  = 1 << 20  // bytes of one
	shortList  = 2 << 20  // bytes of methods that are held without a place among the long lists
	maxPages   = 2000     // of a module whose pages never end
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
	Methods   [][]byte         // a description each
	Others    []jsondoc.Member // the members beside them
	LeftOut   bool             // there are methods beyond what one response may cost
	ETag      string
	Unchanged bool // what was known before still holds; the rest is empty

	held int
	long bool // it has the place of long lists
}

// longLists is the place of the one long list that is read at a time in this process.
var longLists = make(chan struct{}, 1)

// done ends the use of a response.
func (a *Response) done() {
	if a.long {
		<-longLists
	}
	*a = Response{ETag: a.ETag, Unchanged: a.Unchanged}
}

// Description is what a site says about its methods to one caller.
type Description struct {
	Methods     []Described
	LeftOut     bool
	Extension   bool // the site shows the McpTool attribute and who may discover
	MayDiscover bool // true where the site does not say
}

// Described is what the rules look at of one method, or why its description could not be read.
type Described struct {
	ID          string
	Marked      bool   // it carries the McpTool attribute
	ReadOnly    *bool  // what its annotation says; nil: nothing
	Destructive bool   // its annotation says so
	Raw         []byte // the description's own bytes
	Err         error

	read func(jsondoc.Value) (translate.Method, error)
}

// Method reads the description again: trees of many would take many times their bytes.
func (d Described) Method() (translate.Method, error) {
	tree, err := jsondoc.Parse(d.Raw)
	if err != nil {
		return translate.Method{ID: idOf(d.Raw)}, fmt.Errorf("its description is not JSON: %w", err)
	}
	return d.read(tree)
}

// JSONRPC discovers by GET /jsonrpc/methods, which the jsonrpc_discovery module serves. The site leaves out what the
// caller may not run.
type JSONRPC struct{ Site *upstream.Client }

// Fetch reads the whole list: the site has no pages.
func (s JSONRPC) Fetch(ctx context.Context, who caller.Caller, etag string) (Response, error) {
	var a Response
	doc, err := s.Site.Get(ctx, who, "/jsonrpc/methods", "", etag, func(in io.Reader) error { return a.add(ctx, in, "data") })
	switch {
	case err != nil:
		a.done()
		return Response{}, err
	case doc.Unchanged:
		return Response{Unchanged: true, ETag: etag}, nil
	}
	a.ETag = doc.ETag
	return a, nil
}

// Read reads {"data": [method, …], "meta": {"mcp": {"discovery": bool}}}.
func (JSONRPC) Read(a Response) (Description, error) {
	d := Description{MayDiscover: true}
	d.describe(a, translate.ReadMethod, &methodsRead)
	for _, other := range a.Others {
		v, err := jsondoc.Parse(other.Value.Raw)
		if err != nil {
			return Description{}, fmt.Errorf("the site's list of methods: its member %.80q is not JSON: %w", other.Name, err)
		}
		if mcp, ok := v.Get("mcp"); ok && other.Name == "meta" {
			may, _ := mcp.Get("discovery")
			d.Extension, d.MayDiscover = true, may.IsTrue()
		}
	}
	d.Extension = d.Extension || slices.ContainsFunc(d.Methods, func(m Described) bool { return m.Marked })
	return d, nil
}

// Module discovers by the MCP module's own /mcp/tools/list, page by page. What it lists is exposed, and callers it
// refuses may not discover, nor call, for nothing is known of their tools. Calls still go to /jsonrpc, where every
// response has its id.
type Module struct{ Site *upstream.Client }

// Fetch reads all pages.
func (s Module) Fetch(ctx context.Context, who caller.Caller, _ string) (a Response, err error) {
	defer func() {
		if err != nil {
			a.done()
		}
	}()
	query, seen := "", map[string]bool{}
	for range maxPages {
		a.Others = nil
		if _, err := s.Site.Get(ctx, who, "/mcp/tools/list", query, "", func(in io.Reader) error { return a.add(ctx, in, "tools") }); err != nil {
			return a, err
		}
		cursor := ""
		for _, other := range a.Others {
			if other.Name == "nextCursor" {
				cursor, _ = other.Value.Text()
			}
		}
		if cursor == "" || a.LeftOut {
			return a, nil
		}
		if seen[cursor] {
			break
		}
		seen[cursor] = true
		query = "cursor=" + url.QueryEscape(cursor)
	}
	return a, unreadable(errors.New("the module's pages do not end"))
}

// Read reads the tools of all pages.
func (Module) Read(a Response) (Description, error) {
	d := Description{Extension: true, MayDiscover: true}
	d.describe(a, translate.ReadTool, &toolsRead)
	return d, nil
}

// add reads a document whose member list holds methods.
func (a *Response) add(ctx context.Context, in io.Reader, list string) (err error) {
	a.Others, err = jsondoc.Stream(in, list, maxMethod, func(raw []byte) error {
		switch {
		case len(a.Methods) == maxMethods || a.held+len(raw) > maxHeld:
			a.LeftOut = true
			return jsondoc.ErrEnough
		case raw == nil:
			a.LeftOut = true
			return nil
		}
		if a.held += len(raw); a.held > shortList && !a.long {
			select {
			case longLists <- struct{}{}:
				a.long = true
			case <-ctx.Done():
				return fmt.Errorf("waiting to read a long list: %w", context.Cause(ctx))
			}
		}
		a.Methods = append(a.Methods, raw)
		return nil
	})
	return err
}

// mentions reports whether a text stands in any description.
func (a *Response) mentions(text string) bool {
	return slices.ContainsFunc(a.Methods, func(raw []byte) bool { return bytes.Contains(raw, []byte(text)) })
}

// sum is the same for responses that say the same.
func (a *Response) sum(more ...[]byte) [sha256.Size]byte {
	hash := sha256.New()
	add := func(text []byte) {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		hash.Write(text)
	}
	for _, raw := range a.Methods {
		add(raw)
	}
	for _, other := range a.Others {
		add([]byte(other.Name))
		add(other.Value.Raw)
	}
	add(strconv.AppendBool(nil, a.LeftOut))
	for _, text := range more {
		add(text)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// describe reads each method, unless it was read before. One that cannot even be parsed costs itself only.
func (d *Description) describe(a Response, read func(jsondoc.Value) (translate.Method, error), before *readings) {
	d.Methods, d.LeftOut = make([]Described, len(a.Methods)), a.LeftOut
	for i, raw := range a.Methods {
		key := sha256.Sum256(raw)
		described, known := before.get(key)
		described.Raw, described.read = raw, read
		if !known {
			m, err := described.Method()
			described.ID, described.Marked, described.Err = strings.Clone(m.ID), m.Marked(), err
			if hint, known := m.Hint("readOnlyHint"); known {
				described.ReadOnly = &hint
			}
			described.Destructive, _ = m.Hint("destructiveHint")
			before.put(key, described)
		}
		d.Methods[i] = described
	}
}

// readings are what was read of methods, by their bytes: callers and times differ in which methods they have, seldom in what one
// says, and parsing all of them again took a third of a discovery. The zero value is ready.
type readings struct {
	mu sync.Mutex
	m  map[[sha256.Size]byte]Described // without Raw and read
}

// What is remembered was read of JSON-RPC methods, and of a module's tools.
var methodsRead, toolsRead readings

// Bounds of what is remembered: methods, and bytes of the id of one.
const maxReadings, maxReadID = 20_000, 256

func (r *readings) get(key [sha256.Size]byte) (Described, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.m[key]
	return d, ok
}

func (r *readings) put(key [sha256.Size]byte, d Described) {
	if d.Err != nil || len(d.ID) > maxReadID {
		return
	}
	d.Raw, d.read = nil, nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.m == nil || len(r.m) == maxReadings {
		r.m = map[[sha256.Size]byte]Described{}
	}
	r.m[key] = d
}

// idOf finds out what a broken description is about, for the diagnostics.
func idOf(raw []byte) (id string) {
	passOver := func([]byte) error { return nil }
	members, _ := jsondoc.Stream(bytes.NewReader(raw), "", maxMethod, passOver) // what comes before it is broken
	for _, m := range members {
		if m.Name == "id" || m.Name == "name" {
			id, _ = m.Value.Text()
			break
		}
	}
	return id
}
