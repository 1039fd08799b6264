package suites

import (
	"github.com/bridgecheck/bridgecheck/suites/access"
	"github.com/bridgecheck/bridgecheck/suites/auth"
	"github.com/bridgecheck/bridgecheck/suites/describe"
	"github.com/bridgecheck/bridgecheck/suites/errors"
	"github.com/bridgecheck/bridgecheck/suites/filter"
	"github.com/bridgecheck/bridgecheck/suites/fresh"
	"github.com/bridgecheck/bridgecheck/suites/harness"
	"github.com/bridgecheck/bridgecheck/suites/http"
	"github.com/bridgecheck/bridgecheck/suites/invoke"
	"github.com/bridgecheck/bridgecheck/suites/list"
	"github.com/bridgecheck/bridgecheck/suites/load"
	"github.com/bridgecheck/bridgecheck/suites/mapping"
	"github.com/bridgecheck/bridgecheck/suites/mcp"
	"github.com/bridgecheck/bridgecheck/suites/pertool"
	"github.com/bridgecheck/bridgecheck/suites/profile"
	"github.com/bridgecheck/bridgecheck/suites/replicas"
	"github.com/bridgecheck/bridgecheck/suites/schema"
	"github.com/bridgecheck/bridgecheck/suites/translate"
	"github.com/bridgecheck/bridgecheck/suites/upstream"
)

// area is one area of the contract with its checks.
type area struct {
	name   string
	checks []harness.Check
}

var areas = []area{
	{"access", access.Checks},
	{"auth", auth.Checks},
	{"describe", describe.Checks},
	{"errors", errors.Checks},
	{"filter", filter.Checks},
	{"fresh", fresh.Checks},
	{"http", http.Checks},
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
func prepare(site harness.Controlled) (undo func()) { return mapping.Prepare(site) }
