package catalog

import (
	"bytes"
	"cmp"
)

// Changes says how one catalog differs from the one before it, by tool name.
type Changes struct {
	Added, Removed, Changed []string
}

// Any reports whether anything differs.
func (c Changes) Any() bool { return len(c.Added)+len(c.Removed)+len(c.Changed) > 0 }

// Diff compares two catalogs; old may be nil.
func Diff(old, now *Catalog) Changes {
	var c Changes
	old = cmp.Or(old, &Catalog{})
	if old == now {
		return c
	}
	for _, t := range now.tools {
		switch before, ok := old.Lookup(t.Name); {
		case !ok:
			c.Added = append(c.Added, t.Name)
		case before != t && !bytes.Equal(before.Encoded(), t.Encoded()):
			c.Changed = append(c.Changed, t.Name)
		}
	}
	for _, t := range old.tools {
		if _, ok := now.Lookup(t.Name); !ok {
			c.Removed = append(c.Removed, t.Name)
		}
	}
	return c
}
