package discovery

import (
	"context"
	"errors"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// View is what one caller may see at present.
type View struct {
	MayDiscover bool // may list and describe
	Administers bool // may use the bridge's administration
	Stale       bool // the site did not respond; this is what it said Age ago
	Age         time.Duration

	who     caller.Caller
	set     *set
	listing *catalog.Listing
}

// Catalog holds all of the caller's tools. With lazy schemas they are known by name only: Page and Tool give them whole.
func (v View) Catalog() *catalog.Catalog { return v.set.catalog }

// Page returns the page of the caller's tools that a cursor means. With lazy schemas a fault says that the site did not
// describe one of them.
func (v View) Page(ctx context.Context, at catalog.Cursor) (*catalog.Page, error) {
	page := v.listing.Page(v.set.catalog, at)
	if v.set.shelf == nil {
		return page, nil
	}
	return v.set.shelf.page(ctx, v.who, page)
}

// Tool returns the caller's tool of exactly this name. The ToolNotFound fault is the same for every name that the caller
// cannot have: unknown, hidden, filtered or denied.
func (v View) Tool(ctx context.Context, name string) (*catalog.Tool, error) {
	tool, ok := v.set.catalog.Lookup(name)
	if !ok {
		return nil, unknownTool(name)
	}
	if v.set.shelf == nil {
		return tool, nil
	}
	tool, err := v.set.shelf.tool(ctx, v.who, tool)
	if errors.Is(err, errUndescribed) {
		err = nil
	}
	return tool, err
}

func unknownTool(name string) *fault.Error {
	return fault.New(fault.ToolNotFound, "There is no tool named %q.", fault.Brief(name))
}
