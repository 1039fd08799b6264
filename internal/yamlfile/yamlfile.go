// Package yamlfile reads files that people write in YAML: Root gives the one document of a file, Decode reads it into a
// struct and refuses what the struct does not know. Every mistake is reported with file and line. The package knows
// nothing of what the files are for.
package yamlfile

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Root is the value of a file's one document; nil where there is none, or null. A second document is an error, since nobody
// would read it; so is one that nests values too deep, or whose aliases stand for too many.
func Root(name string, data []byte) (*yaml.Node, error) {
	if line, err := Bounded(data); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	var doc, more yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	if err := documents.Decode(&doc); err != nil && err != io.EOF {
		return nil, Malformed(name, data, err)
	}
	if doc.Kind == 0 || doc.Content[0].Tag == "!!null" {
		return nil, nil
	}
	switch err := documents.Decode(&more); {
	case err == nil && more.Content[0].Tag != "!!null":
		return nil, fmt.Errorf("%s:%d: a second document begins before this line: one file holds one", name, more.Content[0].Line)
	case err != nil && err != io.EOF:
		return nil, Malformed(name, data, err)
	}
	return doc.Content[0], expanded(name, doc.Content[0])
}

var atLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// Malformed returns an error of the YAML library with file, and line where it names one.
func Malformed(name string, data []byte, err error) error {
	place, text := name, err.Error()
	found := atLine.FindStringSubmatch(text)
	text = text[len(found[0]):]
	if found[1] != "" {
		place += ":" + found[1]
	}
	if strings.Contains(text, "cannot start any token") && slices.ContainsFunc(bytes.Split(data, []byte("\n")), indentedByTab) {
		text += ": YAML is indented by blanks, not by tabs"
	}
	return fmt.Errorf("%s: %s", place, text)
}

func indentedByTab(line []byte) bool {
	return bytes.ContainsRune(line[:len(line)-len(bytes.TrimLeft(line, " \t"))], '\t')
}
