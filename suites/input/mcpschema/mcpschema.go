// Package mcpschema holds MCP's messages to a JSON Schema of their revision: those that a server with tools sends. The
// schemas are written from the specification, not copied; a test holds them against the official ones. What they accept
// may still break a clause; what they refuse breaks the protocol.
package mcpschema

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Kind is what a document is, named as the specification names it.
type Kind string

// The kinds: results of methods, a tool of a list, errors, and notifications. Initialize is of the revisions with sessions, Discover and
// Acknowledged of the one without.
const (
	Initialize   Kind = "InitializeResult"
	Discover     Kind = "DiscoverResult"
	ListTools    Kind = "ListToolsResult"
	CallTool     Kind = "CallToolResult"
	Tool         Kind = "Tool"
	Error        Kind = "ErrorResponse"
	ListChanged  Kind = "ToolListChangedNotification"
	Acknowledged Kind = "SubscriptionsAcknowledgedNotification"
)

//go:embed *.json
var files embed.FS

var compiled sync.Map // func() (*jsonschema.Schema, error) by revision and kind

// Fault says what in a document its revision does not allow; "" when nothing. Numbers are json.Number.
func Fault(revision string, kind Kind, document any) string {
	compile, _ := compiled.LoadOrStore(revision+string(kind), sync.OnceValues(func() (*jsonschema.Schema, error) { return load(revision, kind) }))
	schema, err := compile.(func() (*jsonschema.Schema, error))()
	if err != nil {
		return err.Error()
	}
	var invalid *jsonschema.ValidationError
	if err := schema.Validate(document); errors.As(err, &invalid) {
		return deepest(invalid)
	}
	return ""
}

func load(revision string, kind Kind) (*jsonschema.Schema, error) {
	text, err := files.ReadFile(revision + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no schema of the revision %q", revision)
	}
	return Compile(text, "#/$defs/"+string(kind))
}

// Compile compiles the part of a schema at a JSON pointer (#/…).
func Compile(text []byte, pointer string) (*jsonschema.Schema, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var document any
	if err := dec.Decode(&document); err != nil {
		return nil, fmt.Errorf("mcpschema: %w", err)
	}
	const address = "schema:///mcp.json"
	c := jsonschema.NewCompiler()
	c.AssertFormat() // of URIs: drafts differ in whether it is asserted by default
	if err := c.AddResource(address, document); err != nil {
		return nil, fmt.Errorf("mcpschema: %w", err)
	}
	return c.Compile(address + pointer)
}

// deepest returns the line of an error whose place is deepest in the document, the first of several.
func deepest(e *jsonschema.ValidationError) string {
	best, depth := "", -1
	for line := range strings.SplitSeq(e.Error(), "\n") {
		place, isCause := strings.CutPrefix(strings.TrimSpace(line), "- at ")
		if d := strings.Count(place, "/"); isCause && d > depth {
			best, depth = "at "+place, d
		}
	}
	if best == "" {
		return e.Error()
	}
	return best
}
