// Package areas lists the areas of the contract, each with its checks. An area imports what a check is written with
// (suites/check, suites/match, suites/scenario) and never another area. Nothing else imports a single area.
package areas

import (
	"slices"

	"github.com/bridgecheck/bridgecheck/suites/areas/access"
	"github.com/bridgecheck/bridgecheck/suites/areas/auth"
	"github.com/bridgecheck/bridgecheck/suites/areas/describe"
	"github.com/bridgecheck/bridgecheck/suites/areas/errorcodes"
	"github.com/bridgecheck/bridgecheck/suites/areas/filter"
	"github.com/bridgecheck/bridgecheck/suites/areas/fresh"
	"github.com/bridgecheck/bridgecheck/suites/areas/invoke"
	"github.com/bridgecheck/bridgecheck/suites/areas/list"
	"github.com/bridgecheck/bridgecheck/suites/areas/load"
	"github.com/bridgecheck/bridgecheck/suites/areas/mapping"
	"github.com/bridgecheck/bridgecheck/suites/areas/mcp"
	"github.com/bridgecheck/bridgecheck/suites/areas/pertool"
	"github.com/bridgecheck/bridgecheck/suites/areas/profile"
	"github.com/bridgecheck/bridgecheck/suites/areas/protocol"
	"github.com/bridgecheck/bridgecheck/suites/areas/replicas"
	"github.com/bridgecheck/bridgecheck/suites/areas/schema"
	"github.com/bridgecheck/bridgecheck/suites/areas/translate"
	"github.com/bridgecheck/bridgecheck/suites/areas/upstream"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/site"
)

// Area is one area of the contract with its checks.
type Area struct {
	Name   string // before the slash of its clauses' ids
	Checks []check.Check
}

// All are the areas by name.
var All = []Area{
	{"access", access.Checks},
	{"auth", auth.Checks},
	{"describe", describe.Checks},
	{"errors", errorcodes.Checks},
	{"filter", filter.Checks},
	{"fresh", fresh.Checks},
	{"http", protocol.Checks},
	{"invoke", invoke.Checks},
	{"list", list.Checks},
	{"load", load.Checks},
	{"mapping", mapping.Checks},
	{"mcp", mcp.Checks},
	{"per-tool", pertool.Checks},
	{"profile", profile.Checks},
	{"replicas", replicas.Checks},
	{"schema", schema.Checks},
	{"translate", translate.Checks},
	{"upstream", upstream.Checks},
}

// Last is the area that is tested last: a bridge that does not get over a site that failed would be blamed for all that
// follows.
const Last = "upstream"

// Checks lists the checks of every area.
func Checks() []check.Check {
	var all []check.Check
	for _, area := range All {
		all = append(all, area.Checks...)
	}
	return all
}

// Check returns the check of a clause. False: it has none.
func Check(id string) (check.Check, bool) {
	for _, area := range All {
		if i := slices.IndexFunc(area.Checks, func(c check.Check) bool { return c.ID == id }); i >= 0 {
			return area.Checks[i], true
		}
	}
	return check.Check{}, false
}

// Prepare changes the site of a run as some checks need it from the beginning, and returns what changes it back.
func Prepare(site site.Controlled) (undo func()) { return mapping.Prepare(site) }
