package exact

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Write writes a value as encoding/json does without escapes for HTML and without a closing newline, and faster where it
// is of what Parse gives. Errors are encoding/json's.
func Write(v any) ([]byte, error) { return write(nil, v) }

func write(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		if v {
			return append(b, "true"...), nil
		}
		return append(b, "false"...), nil
	case string:
		return writeString(b, v)
	case json.Number:
		if isNumber(string(v)) {
			return append(b, v...), nil
		}
	case map[string]any:
		if v != nil {
			return writeObject(b, v)
		}
	case []any:
		if v != nil {
			return writeList(b, v)
		}
	}
	return writeAnything(b, v)
}

func writeObject(b []byte, object map[string]any) (_ []byte, err error) {
	var few [16]string // most objects have no more members
	names := slices.AppendSeq(few[:0], maps.Keys(object))
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = writeString(b, name); err != nil {
			return nil, err
		}
		if b, err = write(append(b, ':'), object[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func writeList(b []byte, list []any) (_ []byte, err error) {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = write(b, item); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func writeString(b []byte, s string) ([]byte, error) {
	if !plain(s) {
		return writeAnything(b, s)
	}
	return append(append(append(b, '"'), s...), '"'), nil
}

// plain reports whether a string is written as it stands.
func plain(s string) bool {
	ascii := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			return false
		} else if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	return ascii || utf8.ValidString(s) && !strings.ContainsAny(s, "\u2028\u2029")
}

// isNumber reports whether a text is a JSON number and nothing beside it.
func isNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		return false
	}
	if strings.Trim(digits, "0123456789") == "" {
		return digits[0] != '0' || digits == "0"
	}
	last := digits[len(digits)-1]
	return last >= '0' && last <= '9' && jsontext.Value(s).IsValid()
}

func writeAnything(b []byte, v any) ([]byte, error) {
	var whole bytes.Buffer
	enc := json.NewEncoder(&whole)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return append(b, bytes.TrimSuffix(whole.Bytes(), []byte("\n"))...), nil
}
