package translate

import (
	"encoding/json"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// FieldType says how a Drupal field type reads in JSON Schema. A new type is one entry in fieldTypes, or one rule in
// the configuration.
type FieldType struct {
	// Schema is what one value looks like.
	Schema json.RawMessage
	// Settings says where a field setting's value goes: paths into Schema such as maximum or properties/value/maxLength.
	// A setting that settingValues knows is converted on the way.
	Settings map[string][]string
	// Target says where the values go that an entity reference may take; "" for types that refer to nothing.
	Target string
}

// Schemas that several field types share.
const (
	formattedText = `{"type":"object","properties":{"value":{"type":"string"},"format":{"type":"string"}},"required":["value"]}`
	fileReference = `{"type":"object","properties":{"target_id":{"type":"integer","minimum":1},"filename":{"type":"string"},` +
		`"filesize":{"type":"integer","minimum":0},"description":{"type":"string"}},"required":["target_id"]}`
	imageReference = `{"type":"object","properties":{"target_id":{"type":"integer","minimum":1},"filename":{"type":"string"},` +
		`"filesize":{"type":"integer","minimum":0},"alt":{"type":"string"},"title":{"type":"string"}},"required":["target_id"]}`
)

// Settings that several field types share.
var (
	bounds       = map[string][]string{"min": {"minimum"}, "max": {"maximum"}, "unsigned": {"minimum"}}
	length       = map[string][]string{"max_length": {"maxLength"}}
	choices      = map[string][]string{"allowed_values": {"enum"}}
	textSettings = map[string][]string{"max_length": {"properties/value/maxLength"}, "allowed_formats": {"properties/format/enum"}}
	fileSettings = map[string][]string{"file_extensions": {"properties/filename/pattern"}, "max_filesize": {"properties/filesize/maximum"}}
)

// fieldTypes are the field types of Drupal core and its usual companions.
var fieldTypes = map[string]FieldType{
	"boolean":        {Schema: json.RawMessage(`{"type":"boolean"}`)},
	"integer":        {Schema: json.RawMessage(`{"type":"integer"}`), Settings: bounds},
	"decimal":        {Schema: json.RawMessage(`{"type":"number"}`), Settings: bounds},
	"float":          {Schema: json.RawMessage(`{"type":"number"}`), Settings: bounds},
	"string":         {Schema: json.RawMessage(`{"type":"string"}`), Settings: length},
	"string_long":    {Schema: json.RawMessage(`{"type":"string"}`), Settings: length},
	"email":          {Schema: json.RawMessage(`{"type":"string","format":"email"}`), Settings: length},
	"telephone":      {Schema: json.RawMessage(`{"type":"string"}`), Settings: length},
	"uri":            {Schema: json.RawMessage(`{"type":"string","format":"uri"}`), Settings: length},
	"uuid":           {Schema: json.RawMessage(`{"type":"string","format":"uuid"}`)},
	"language":       {Schema: json.RawMessage(`{"type":"string","pattern":"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"}`)},
	"timestamp":      {Schema: json.RawMessage(`{"type":"integer"}`), Settings: bounds},
	"created":        {Schema: json.RawMessage(`{"type":"integer"}`)},
	"changed":        {Schema: json.RawMessage(`{"type":"integer"}`)},
	"comment_status": {Schema: json.RawMessage(`{"type":"integer","enum":[0,1,2]}`)}, // hidden, closed, open
	"list_string":    {Schema: json.RawMessage(`{"type":"string"}`), Settings: choices},
	"list_integer":   {Schema: json.RawMessage(`{"type":"integer"}`), Settings: choices},
	"list_float":     {Schema: json.RawMessage(`{"type":"number"}`), Settings: choices},
	"map":            {Schema: json.RawMessage(`{"type":"object"}`)},
	"datetime": {
		Schema:   json.RawMessage(`{"type":"string","format":"date-time"}`),
		Settings: map[string][]string{"datetime_type": {"format"}},
	},
	"daterange": {
		Schema: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string","format":"date-time"},` +
			`"end_value":{"type":"string","format":"date-time"}},"required":["value","end_value"]}`),
		Settings: map[string][]string{"datetime_type": {"properties/value/format", "properties/end_value/format"}},
	},
	"text":           {Schema: json.RawMessage(formattedText), Settings: textSettings},
	"text_long":      {Schema: json.RawMessage(formattedText), Settings: textSettings},
	"text_formatted": {Schema: json.RawMessage(formattedText), Settings: textSettings},
	"text_with_summary": {
		Schema: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"},"summary":{"type":"string"},` +
			`"format":{"type":"string"}},"required":["value"]}`),
		Settings: textSettings,
	},
	"link": {
		Schema: json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","format":"uri"},"title":{"type":"string"}},"required":["uri"]}`),
	},
	"path": {
		Schema: json.RawMessage(`{"type":"object","properties":{"alias":{"type":"string","pattern":"^/"},"langcode":{"type":"string"}}}`),
	},
	"file":             {Schema: json.RawMessage(fileReference), Settings: fileSettings},
	"image":            {Schema: json.RawMessage(imageReference), Settings: fileSettings},
	"entity_reference": {Schema: json.RawMessage(`{"type":"string"}`), Target: "enum"},
}

// FieldTypes returns the built-in field types by name.
func FieldTypes() map[string]FieldType { return maps.Clone(fieldTypes) }

// settingValues convert Drupal's field settings; one that is not here goes as it is. The zero value leaves it out.
var settingValues = map[string]func(jsondoc.Value) jsondoc.Value{
	"allowed_values":  allowedValues,
	"allowed_formats": allowedValues,
	"file_extensions": extensionPattern,
	"max_filesize":    byteSize,
	"datetime_type":   dateFormat,
	"unsigned":        zeroWhenTrue,
	"max_length":      positive,
}

// allowedValues reads the keys of {"draft": "Draft"}, the values of [{"value": "draft", "label": "Draft"}], or a list.
func allowedValues(v jsondoc.Value) jsondoc.Value {
	var values []jsondoc.Value
	for _, m := range v.Members {
		values = append(values, jsondoc.NewString(m.Name))
	}
	for _, item := range v.Items {
		if value, ok := item.Get("value"); ok {
			item = value
		}
		if item.Kind == jsondoc.String || item.Kind == jsondoc.Number {
			values = append(values, item)
		}
	}
	if values == nil {
		return jsondoc.Value{}
	}
	return jsondoc.NewArray(values...)
}

// extensionPattern makes a pattern for file names of "txt pdf" or ["txt", "pdf"].
func extensionPattern(v jsondoc.Value) jsondoc.Value {
	list, _ := v.Text()
	extensions := strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' })
	for _, item := range v.Items {
		if s, ok := item.Text(); ok {
			extensions = append(extensions, s)
		}
	}
	if len(extensions) == 0 {
		return jsondoc.Value{}
	}
	for i, e := range extensions {
		extensions[i] = regexp.QuoteMeta(strings.TrimPrefix(e, "."))
	}
	return jsondoc.NewString(`\.(` + strings.Join(extensions, "|") + `)$`)
}

// sizes are the units of PHP's byte sizes.
var sizes = map[string]int{"": 1, "b": 1, "bytes": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}

// byteSize reads "2 MB", "512K" or a number of bytes.
func byteSize(v jsondoc.Value) jsondoc.Value {
	if v.Kind == jsondoc.Number {
		return v
	}
	text, _ := v.Text()
	digits := strings.TrimRight(text, " bytesBYTESkKmMgG")
	n, err := strconv.ParseFloat(digits, 64)
	unit, known := sizes[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	if err != nil || !known || n < 0 || n > 1<<30 {
		return jsondoc.Value{}
	}
	return jsondoc.NewInt(int(n * float64(unit)))
}

// dateFormat says how a date field is written: with its time unless it has none.
func dateFormat(v jsondoc.Value) jsondoc.Value {
	if kind, _ := v.Text(); kind == "date" {
		return jsondoc.NewString("date")
	}
	return jsondoc.Value{}
}

func zeroWhenTrue(v jsondoc.Value) jsondoc.Value {
	if v.IsTrue() {
		return jsondoc.NewInt(0)
	}
	return jsondoc.Value{}
}

func positive(v jsondoc.Value) jsondoc.Value {
	if n, ok := v.Int(); ok && n > 0 {
		return v
	}
	return jsondoc.Value{}
}
