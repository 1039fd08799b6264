package catalog

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// Cursor is the offset of a page's first tool. Its text form is the base64 of the decimal offset: NTA= is 50.
type Cursor int

// maxOffset is far beyond any catalog and far below what an int holds.
const maxOffset = 1_000_000_000

// ParseCursor reads a cursor, with or without base64's padding; "" is the first page. All else that String would not
// have written is an InvalidCursor fault.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return 0, nil
	}
	bare := strings.TrimRight(text, "=")
	decimal, err := base64.RawStdEncoding.Strict().DecodeString(bare)
	if err == nil {
		offset, err := strconv.Atoi(string(decimal))
		c := Cursor(offset)
		// Written back, the same text must come: that rules out signs, leading zeros, blanks and line breaks.
		if err == nil && offset >= 0 && offset <= maxOffset && (text == c.String() || text == strings.TrimRight(c.String(), "=")) {
			return c, nil
		}
	}
	return 0, fault.New(fault.InvalidCursor, "The cursor is not one that this bridge gave out; list again without it.")
}

// String is the text that goes to the client.
func (c Cursor) String() string {
	return base64.StdEncoding.EncodeToString(strconv.AppendInt(nil, int64(c), 10))
}
