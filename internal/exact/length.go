package exact

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// EndsInTheMiddle is what findings say of a body for which CountsCharacters is true; reports look for it.
const EndsInTheMiddle = "ends in the middle, at its Content-Length"

// CountsCharacters reports whether a body is the beginning of a JSON document and as long as its Content-Length says, as where
// that is the number of the document's characters: one of those that are several bytes then stands before the end.
func CountsCharacters(body []byte, length string) bool {
	if length != strconv.Itoa(len(body)) || !slices.ContainsFunc(body, func(b byte) bool { return b >= utf8.RuneSelf }) {
		return false
	}
	var document json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(body)).Decode(&document), io.ErrUnexpectedEOF)
}
