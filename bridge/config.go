package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/bridge/schema"
	"github.com/bridgecheck/bridgecheck/bridge/translate"
	"github.com/bridgecheck/bridgecheck/internal/suggest"
	"github.com/bridgecheck/bridgecheck/internal/yamlfile"
)

// LoadConfig reads a configuration file: YAML, a key for every setting by its name, NAME_file for a secret (relative to
// the configuration's folder), and `types` with rules for custom field types. Whatever is wrong is an error with file
// and line.
func LoadConfig(path string) (Options, error) {
	data, err := readShort(path)
	if err != nil {
		return Options{}, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	o, err := ParseConfig(path, data)
	o.checkMode(path)
	return o, err
}

// ParseConfig reads a configuration; name is what messages call it.
func ParseConfig(name string, data []byte) (Options, error) {
	var o Options
	if line, err := yamlfile.Bounded(data); err != nil {
		return o, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return o, nil // an empty file says nothing
		}
		return o, fmt.Errorf("%s%s", name, yamlMessage(err))
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return o, fmt.Errorf("%s: a configuration is one YAML document, not several", name)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return o, fmt.Errorf("%s:%d: a configuration is a mapping of settings, as in `page_size: 50`", name, root.Line)
	}
	known := map[string]Setting{}
	for _, s := range Settings() {
		known[s.Name] = s
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := fmt.Sprintf("%s:%d: ", name, key.Line)
		if first := seen[key.Value]; first > 0 {
			return o, fmt.Errorf("%s%s is set a second time, after line %d", at, key.Value, first)
		}
		seen[key.Value] = key.Line
		if err := o.configure(known, key.Value, value, filepath.Dir(name)); err != nil {
			return o, fmt.Errorf("%s%w", at, err)
		}
	}
	return o, nil
}

// configure takes one key of a configuration.
func (o *Options) configure(known map[string]Setting, key string, value *yaml.Node, dir string) error {
	if key == "types" {
		return o.fieldTypes(value)
	}
	if s, ok := known[strings.TrimSuffix(key, "_file")]; ok && s.Secret && strings.HasSuffix(key, "_file") {
		path := value.Value
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		text, err := o.readSecret(path)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return s.Set(o, text)
	}
	s, ok := known[key]
	switch {
	case !ok:
		return fmt.Errorf("unknown setting %q; %s", key, suggest.Among(key, names()))
	case s.Secret:
		return fmt.Errorf("%s is a secret: put it into a file of its own and name that by %s_file, or use the environment (%s)", key, key, s.Env)
	}
	text, err := scalar(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return s.Set(o, text)
}

// scalar returns a value, or a list of values with commas between them.
func scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", errors.New("has no value; leave the line out for the default")
		}
		return n.Value, nil
	case yaml.SequenceNode:
		var list []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, ",") {
				return "", errors.New("must be a list of plain values")
			}
			list = append(list, item.Value)
		}
		return strings.Join(list, ","), nil
	}
	return "", errors.New("must be a value or a list of values, not a mapping")
}

// fieldTypes reads the rules for custom field types.
func (o *Options) fieldTypes(n *yaml.Node) error {
	var rules map[string]struct {
		Schema   map[string]any    `yaml:"schema"`
		Settings map[string]string `yaml:"settings"`
		Target   string            `yaml:"target"`
	}
	text, err := yaml.Marshal(n)
	if err != nil {
		return fmt.Errorf("types: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&rules); err != nil {
		return fmt.Errorf("types: each is a name with schema and, where needed, settings and target%s", yamlMessage(err))
	}
	o.Types = map[string]translate.FieldType{}
	for name, r := range rules {
		doc, err := json.Marshal(r.Schema)
		if err != nil || r.Schema == nil {
			return fmt.Errorf("types: %s has no schema that could be written as JSON", name)
		}
		if _, err := schema.Compile(doc); err != nil {
			return fmt.Errorf("types: %s: %w", name, err)
		}
		rule := translate.FieldType{Schema: doc, Target: r.Target, Settings: map[string][]string{}}
		for setting, path := range r.Settings {
			rule.Settings[setting] = []string{path}
		}
		o.Types[name] = rule
	}
	return nil
}

// names lists the keys that a configuration takes.
func names() []string {
	var list []string
	for _, s := range Settings() {
		if s.Secret {
			list = append(list, s.Name+"_file")
		} else {
			list = append(list, s.Name)
		}
	}
	return append(list, "types")
}

// yamlLine finds the line in the YAML library's messages, which name Go's types after it.
var yamlLine = regexp.MustCompile(`line (\d+): (.*)`)

// yamlMessage words the YAML library's errors as :LINE: MESSAGE.
func yamlMessage(err error) string {
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		message, _, _ := strings.Cut(m[2], " in type ")
		return ":" + m[1] + ": " + message
	}
	return ": " + strings.TrimPrefix(err.Error(), "yaml: ")
}
