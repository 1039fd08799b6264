package terminal

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns a YAML document with the same value, in which texts that Escape or JSON would change are in double quotes, with
// the escapes of JSON. It is for YAML that is printed to a terminal or a log; a document without such texts stays as it is.
func YAML(data []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("read YAML to print it: %w", err)
	}
	if !quoteUnsafe(&root) {
		return data, nil
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, fmt.Errorf("write YAML to print it: %w", err)
	}
	return JSON(b.Bytes()), nil
}

// quoteUnsafe puts the texts of a document that are not safe to print in double quotes, and reports whether there are any.
func quoteUnsafe(n *yaml.Node) bool {
	unsafe := n.Kind == yaml.ScalarNode && (Escape(n.Value) != n.Value || strings.Contains(n.Value, "##"))
	if unsafe {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, inner := range n.Content {
		unsafe = quoteUnsafe(inner) || unsafe
	}
	return unsafe
}
