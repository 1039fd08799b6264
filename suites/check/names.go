package check

import (
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/patience"
)

// What a check names most of what it sends and receives. Package client documents them.
type (
	Args        = client.Args
	Credentials = client.Credentials
	Identity    = client.Identity
	Request     = client.Request
	Response    = client.Response
	Revision    = client.Revision
	Session     = client.Session[Client] // a session whose client is one of a check
	Tool        = client.Tool
)

// The accounts of the default site.
const (
	Anonymous  = client.Anonymous
	Outsider   = client.Outsider
	Discoverer = client.Discoverer
	Agent      = client.Agent
	Agent2     = client.Agent2
	NoRPC      = client.NoRPC
	Blocked    = client.Blocked
	Service    = client.Service
	Admin      = client.Admin
)

// The paths of the bridge's interfaces.
const (
	ListPath     = client.ListPath
	DescribePath = client.DescribePath
	InvokePath   = client.InvokePath
	MCPPath      = client.MCPPath
)

// The revisions of MCP that the checks speak.
const (
	MCP2025June     = client.MCP2025June
	MCP2025November = client.MCP2025November
	MCP2026July     = client.MCP2026July
)

// WrongCredentials are those of nobody.
var WrongCredentials = patience.WrongCredentials
