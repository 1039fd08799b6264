package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep JSON is nested (invoke/large-body).
const maxDepth = 128

// decode reads one JSON text. It is stricter than encoding/json: it refuses what is not UTF-8, members that are repeated
// (invoke/duplicate-members) and what follows the value. Numbers stay texts, so that none is rounded.
func decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("not UTF-8")
	}
	if !json.Valid(data) {
		return errors.New("not JSON")
	}
	tokens := json.NewDecoder(bytes.NewReader(data))
	tokens.UseNumber() // else a number that is too large for a float64 is an error
	if err := walk(tokens, 0); err != nil {
		return err
	}
	values := json.NewDecoder(bytes.NewReader(data))
	values.UseNumber()
	return values.Decode(v)
}

// walk reads one value.
func walk(tokens *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d levels", maxDepth)
	}
	token, err := tokens.Token()
	if err != nil {
		return err
	}
	opened, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	names := map[string]bool{}
	for tokens.More() {
		if opened == '{' {
			name, err := tokens.Token()
			if err != nil {
				return err
			}
			if names[name.(string)] {
				return fmt.Errorf("the member %q is repeated", name)
			}
			names[name.(string)] = true
		}
		if err := walk(tokens, depth+1); err != nil {
			return err
		}
	}
	_, err = tokens.Token() // that closes it
	return err
}

// encode writes JSON without HTML's escapes (invoke/result-exact).
func encode(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}
