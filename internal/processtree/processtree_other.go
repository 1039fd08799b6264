//go:build !linux

package processtree

import "slices"

// systemGroup is empty: a group is its trees.
type systemGroup struct{}

func (g *Group) prepare()      {}
func (g *Group) started(*Tree) {}

func (g *Group) alive() bool { return slices.ContainsFunc(g.running(), (*Tree).Alive) }

func (g *Group) interrupt() {
	for _, t := range g.running() {
		t.interrupt()
	}
}

func (g *Group) kill() {
	for _, t := range g.running() {
		t.Kill()
	}
}
