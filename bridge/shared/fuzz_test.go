package shared

import (
	"bufio"
	"bytes"
	"testing"
)

// Whatever a store sends is read within the bounds or refused, and an address is read or refused.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{"+OK\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n$-1\r\n", "$99999999999\r\n", "*2000000000\r\n", "*1\r\n*1\r\n*1\r\n", ":x\r\n", "-ERR no\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := small
		v, err := b.read(bufio.NewReader(bytes.NewReader(data)), 0)
		if err == nil && len(v.text) > small.bytes {
			t.Errorf("a reply of %d bytes is read, beyond %d", len(v.text), small.bytes)
		}
		_, _ = parseAddress(string(data)) // it may be anything
	})
}
