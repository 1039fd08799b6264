package settings

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// How large an argument may be, so that aliases of aliases end.
const (
	maxNodes = 100_000
	maxDepth = 100
)

// document turns a YAML value into JSON, in the order that it has; nil for none. Numbers keep their digits, and what
// YAML takes for a date stays the text that it is. The error begins with the line.
func document(node *yaml.Node) (json.RawMessage, error) {
	if node.IsZero() {
		return nil, nil
	}
	d := &documentWriter{}
	if err := d.value(node, 0); err != nil {
		return nil, err
	}
	return json.RawMessage(d.out.String()), nil
}

type documentWriter struct {
	out   strings.Builder
	nodes int
}

func (d *documentWriter) value(node *yaml.Node, depth int) error {
	d.nodes++
	if d.nodes > maxNodes || depth > maxDepth {
		return fmt.Errorf("%d: that is too large: at most %d values, %d deep", node.Line, maxNodes, maxDepth)
	}
	switch node.Kind {
	case yaml.AliasNode:
		return d.value(node.Alias, depth+1)
	case yaml.MappingNode:
		return d.mapping(node, depth)
	case yaml.SequenceNode:
		d.out.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				d.out.WriteByte(',')
			}
			if err := d.value(item, depth+1); err != nil {
				return err
			}
		}
		d.out.WriteByte(']')
		return nil
	}
	return d.scalar(node)
}

func (d *documentWriter) mapping(node *yaml.Node, depth int) error {
	d.out.WriteByte('{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			return fmt.Errorf("%d: a key should be a text", key.Line)
		case key.Tag == "!!merge":
			return fmt.Errorf("%d: keys are not merged into a mapping (<<): write them out", key.Line)
		case seen[key.Value]:
			return fmt.Errorf("%d: the key %s is there twice", key.Line, key.Value)
		}
		seen[key.Value] = true
		if i > 0 {
			d.out.WriteByte(',')
		}
		d.text(key.Value)
		d.out.WriteByte(':')
		if err := d.value(node.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	d.out.WriteByte('}')
	return nil
}

func (d *documentWriter) scalar(node *yaml.Node) error {
	switch node.Tag {
	case "!!null":
		d.out.WriteString("null")
	case "!!bool":
		var v bool
		if err := node.Decode(&v); err != nil {
			return fmt.Errorf("%d: %q is neither true nor false", node.Line, node.Value)
		}
		fmt.Fprint(&d.out, v)
	case "!!int", "!!float":
		return d.number(node)
	default:
		d.text(node.Value)
	}
	return nil
}

// number writes a number as it stands where JSON has that form, else its value.
func (d *documentWriter) number(node *yaml.Node) error {
	if json.Valid([]byte(node.Value)) {
		d.out.WriteString(node.Value)
		return nil
	}
	if n, ok := new(big.Int).SetString(node.Value, 0); ok {
		d.out.WriteString(n.String())
		return nil
	}
	var v float64
	if err := node.Decode(&v); err != nil {
		return fmt.Errorf("%d: %s is no number that JSON has", node.Line, node.Value)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%d: %s is no number that JSON has", node.Line, node.Value)
	}
	d.out.Write(data)
	return nil
}

func (d *documentWriter) text(s string) {
	text, _ := exact.Write(s) // a string has a form in JSON, whatever is in it
	d.out.Write(text)
}
