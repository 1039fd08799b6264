package suites

import "slices"

// area is one area of the contract with its checks.
type area struct {
	name   string
	checks []Check
}

var areas = []area{
	{"access", slices.Concat(checks__access__access, checks__access__access_credentials)},
	{"describe", slices.Concat(checks__describe__describe)},
	{"errors", slices.Concat(checks__errors__errors)},
	{"filter", slices.Concat(checks__filter__filter)},
	{"fresh", slices.Concat(checks__fresh__fresh)},
	{"http", slices.Concat(checks__http__http)},
	{"invoke", slices.Concat(checks__invoke__invoke, checks__invoke__invoke_arguments, checks__invoke__invoke_errors, checks__invoke__invoke_once, checks__invoke__invoke_shape)},
	{"list", slices.Concat(checks__list__list, checks__list__list_cursor, checks__list__list_site)},
	{"load", slices.Concat(checks__load__load)},
	{"mapping", slices.Concat(checks__mapping__mapping)},
	{"mcp", slices.Concat(checks__mcp__mcp, checks__mcp__mcp_2026, checks__mcp__mcp_notify, checks__mcp__mcp_parity, checks__mcp__mcp_stdio, checks__mcp__mcp_transport)},
	{"per-tool", slices.Concat(checks__pertool__per_tool)},
	{"schema", slices.Concat(checks__schema__schema)},
	{"translate", slices.Concat(checks__translate__translate)},
	{"upstream", slices.Concat(checks__upstream__upstream)},
}
