package suites

import (
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
)

// area is one area of the contract with its checks.
type area struct {
	name   string
	checks []check.Check
}

var areas = []area{
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

// prepare puts what checks have on the site of a run, and returns what removes it.
func prepare(site check.Controlled) (undo func()) { return mapping.Prepare(site) }
