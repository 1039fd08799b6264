package catalog

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// Version is a catalog's content hash.
type Version string

// Catalog is an immutable, ordered set of tools.
type Catalog struct {
	Version  Version
	tools    []*Tool
	index    map[string]int // by name
	pageSize int
	pages    []func() *Page // the pages of a listing from the first one; encoded on first use
}

// New makes a catalog of tools with distinct names, in their order.
func New(tools []*Tool, pageSize int) *Catalog {
	c := &Catalog{tools: tools, index: make(map[string]int, len(tools)), pageSize: pageSize}
	hash := sha256.New()
	for i, t := range tools {
		c.index[t.Name] = i
		hash.Write(t.Encoded())
	}
	c.Version = Version(hex.EncodeToString(hash.Sum(nil)[:12]))
	c.pages = make([]func() *Page, max(1, (len(tools)+pageSize-1)/pageSize))
	for i := range c.pages {
		c.pages[i] = sync.OnceValue(func() *Page { return c.encode(i * pageSize) })
	}
	return c
}

// Tools gives all tools in order. The slice must not be changed.
func (c *Catalog) Tools() []*Tool { return c.tools }

// Lookup finds a tool by its exact name.
func (c *Catalog) Lookup(name string) (*Tool, bool) {
	i, ok := c.index[name]
	if !ok {
		return nil, false
	}
	return c.tools[i], true
}

// Page returns the page that starts at a cursor; beyond the last tool it is empty.
func (c *Catalog) Page(at Cursor) *Page {
	offset := int(at)
	if offset%c.pageSize == 0 && offset/c.pageSize < len(c.pages) {
		return c.pages[offset/c.pageSize]()
	}
	return c.encode(min(offset, len(c.tools)))
}

// Page is one page of a catalog in its listed form.
type Page struct {
	Tools []*Tool
	Next  Cursor // 0 on the last page
	Body  []byte // {"tools":[…],"nextCursor":"…"}
	ETag  string // the catalog's version and the page's offset, quoted

	zipped func() []byte
}

// Gzip is Body compressed, once for all callers; nil where that gains nothing.
func (p *Page) Gzip() []byte { return p.zipped() }

func (c *Catalog) encode(offset int) *Page {
	end := min(offset+c.pageSize, len(c.tools))
	p := &Page{Tools: c.tools[offset:end], ETag: `"` + string(c.Version) + "." + strconv.Itoa(offset) + `"`}
	if end < len(c.tools) {
		p.Next = Cursor(end)
	}
	p.write()
	return p
}

// With returns the same page with other forms of its tools, and a tag that says so.
func (p *Page) With(tools []*Tool) *Page {
	hash := sha256.New()
	for _, t := range tools {
		hash.Write(t.described)
	}
	tag := strings.TrimSuffix(p.ETag, `"`) + "." + hex.EncodeToString(hash.Sum(nil)[:6]) + `"`
	changed := &Page{Tools: tools, Next: p.Next, ETag: tag}
	changed.write()
	return changed
}

// write encodes the page's body.
func (p *Page) write() {
	size := 64
	for _, t := range p.Tools {
		size += len(t.described)
	}
	b := append(make([]byte, 0, size), `{"tools":[`...)
	for i, t := range p.Tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t.Encoded()...)
	}
	b = append(b, ']')
	if p.Next > 0 {
		b = jsondoc.AppendString(append(b, `,"nextCursor":`...), p.Next.String())
	}
	p.Body = append(b, '}')
	p.zipped = sync.OnceValue(func() []byte { return compress(p.Body) })
}

// compress returns nil where the body is too small to gain anything.
func compress(body []byte) []byte {
	const worthIt = 1400 // about one packet
	if len(body) < worthIt {
		return nil
	}
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		return nil // a buffer never fails
	}
	return buf.Bytes()
}
