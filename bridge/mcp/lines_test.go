package mcp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// A stream gives the same lines however it is buffered; those that are too long are left out, and nothing of them is kept.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("{}\n"+strings.Repeat("x", 40)+"\n\n{}"), 20)
	f.Add([]byte(strings.Repeat("y", 100)), 1000)
	f.Fuzz(func(t *testing.T, stream []byte, longest int) {
		longest = min(max(longest, 0), 1000)
		r := bufio.NewReaderSize(bytes.NewReader(stream), 16)
		for part := range bytes.SplitAfterSeq(stream, []byte("\n")) {
			line, tooLong, err := readLine(r, longest)
			must.Assert(t, tooLong == (len(part) > longest) && (!tooLong || line == nil) && (tooLong || bytes.Equal(line, part)),
				"%q: read %q, too long: %t", part, line, tooLong)
			last := !bytes.HasSuffix(part, []byte("\n"))
			must.Assert(t, last == errors.Is(err, io.EOF), "%q: %v", part, err)
		}
	})
}

// Every text can be sent in a header in base64, and is read as it was.
func FuzzHeaderValue(f *testing.F) {
	f.Add("content.echo")
	f.Add("=?base64?eA==?=")
	f.Add("=?base64??=?=")
	f.Fuzz(func(t *testing.T, text string) {
		decoded(text)
		got, ok := decoded("=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?=")
		must.Expect(t, ok && got == text, "%q is read as %q", text, got)
	})
}
