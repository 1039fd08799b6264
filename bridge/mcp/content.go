package mcp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// content says what a tool's result is made into.
type content string

// contentKey is the annotation that says so. Without it a result is text: a string as it is, all else as JSON.
const contentKey = "resultContent"

// The kinds of content beside text. The result of such a method must be an object of the members that MCP gives the
// block: {data, mimeType} for an image or audio, {uri, mimeType, text or blob} for a resource; for blocks it is a list
// of whole blocks. A result of another shape is text.
const (
	imageContent    content = "image"
	audioContent    content = "audio"
	resourceContent content = "resource"
	blocksContent   content = "blocks"
)

func contentOf(annotations jsondoc.Value) content {
	v, _ := annotations.Get(contentKey)
	text, _ := v.Text()
	return content(text)
}

// result makes the CallToolResult of a method's result. structured is the result as the output schema wants it, nil
// where the tool has none.
func (f *form) result(raw, structured json.RawMessage) []byte {
	if structured != nil {
		if f.wrapped {
			structured = append(append([]byte(`{"result":`), structured...), '}')
		}
		b := jsondoc.AppendString([]byte(`{"content":[{"type":"text","text":`), string(structured))
		b = append(append(b, `}],"structuredContent":`...), structured...)
		return append(b, '}')
	}
	if blocks := f.content.blocks(raw); blocks != nil {
		return append(append([]byte(`{"content":`), blocks...), '}')
	}
	text := string(raw)
	if raw[0] == '"' {
		text, _ = jsondoc.Value{Kind: jsondoc.String, Raw: raw}.Text()
	}
	return append(textBlocks([]byte(`{"content":`), text), '}')
}

// failed is the result of a tool that did not do what it was asked, in words that a model can act on.
func failed(texts ...string) []byte {
	return append(textBlocks([]byte(`{"content":`), texts...), `,"isError":true}`...)
}

func textBlocks(b []byte, texts ...string) []byte {
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsondoc.AppendString(append(b, `{"type":"text","text":`...), text), '}')
	}
	return append(b, ']')
}

// blockMembers are the members that a block of each type must have, all strings.
var blockMembers = map[string][]string{"text": {"text"}, "image": {"data", "mimeType"}, "audio": {"data", "mimeType"}}

// blocks makes the list of content blocks; nil where the result does not have the shape.
func (c content) blocks(raw json.RawMessage) []byte {
	switch c {
	case imageContent, audioContent, resourceContent, blocksContent:
	default:
		return nil // most results: a tree of them would cost many times their size
	}
	v, err := jsondoc.Parse(raw)
	if err != nil {
		return nil
	}
	switch c {
	case imageContent, audioContent:
		v = v.With("type", jsondoc.NewString(string(c)))
	case resourceContent:
		v = jsondoc.NewObject(jsondoc.Member{Name: "type", Value: jsondoc.NewString("resource")}, jsondoc.Member{Name: "resource", Value: v})
	case blocksContent:
		if v.Kind != jsondoc.Array {
			return nil
		}
		for _, item := range v.Items {
			if !isBlock(item) {
				return nil
			}
		}
		return raw
	}
	if !isBlock(v) {
		return nil
	}
	return jsondoc.NewArray(v).Bytes()
}

// isBlock reports whether strict clients would read v as a content block.
func isBlock(v jsondoc.Value) bool {
	kind, _ := v.Get("type")
	name, _ := kind.Text()
	if name == "resource" {
		inner, _ := v.Get("resource")
		return hasTexts(inner, "uri") && (hasTexts(inner, "text") || hasTexts(inner, "blob"))
	}
	members, known := blockMembers[name]
	return known && hasTexts(v, members...)
}

func hasTexts(v jsondoc.Value, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		m, ok := v.Get(name)
		return !ok || m.Kind != jsondoc.String
	})
}

// oneLine writes JSON without line breaks, which would end a message on stdio and a line of an event.
func oneLine(raw json.RawMessage) json.RawMessage {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var line bytes.Buffer
	if json.Compact(&line, raw) != nil {
		return raw // cannot be: the site's response was parsed
	}
	return line.Bytes()
}
