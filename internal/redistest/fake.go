//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Fake is a store that answers as a test wants, without redis-server: a hostile one. Unless told otherwise it accepts every
// command, keeps a stream, and has no other keys.
type Fake struct {
	Address string

	mu      sync.Mutex
	replies map[string]string
	counts  map[string]int
	entries []string // of the stream
	stream  string   // its name
}

// The operations whose replies can be set; scripts are named by what their keys hold.
const (
	Auth  = "AUTH"
	Last  = "last"  // script: the id of the last event
	Rate  = "rate"  // script: counts a call
	Try   = "try"   // script: counts a credential under way
	Read  = "XREAD" // reads events
	Ended = "GET"   // whether a session ended
)

// NewFake starts a store that ends with the test.
func NewFake(t testing.TB) *Fake {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &Fake{Address: "redis://" + listener.Addr().String(), replies: map[string]string{}, counts: map[string]int{}}
	var conns sync.WaitGroup
	t.Cleanup(func() { listener.Close(); conns.Wait() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			f.count("connections")
			conns.Go(func() { f.serve(conn) })
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return f
}

// Reply sets the bytes that answer an operation from now on; "" restores what is usual.
func (f *Fake) Reply(operation, raw string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replies[operation] = raw
}

// Count is how often an operation came; that of "connections" is how often one was opened.
func (f *Fake) Count(operation string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[operation]
}

func (f *Fake) count(operation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[operation]++
}

// Entries are the values of the stream.
func (f *Fake) Entries() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.entries...)
}

// Stream is the name of the stream that was written to last.
func (f *Fake) Stream() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stream
}

// Add writes a value into the stream so many times, as whoever has access to the store can.
func (f *Fake) Add(value string, times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range times {
		f.entries = append(f.entries, value)
	}
}

func (f *Fake) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		words, err := command(in)
		if err != nil || len(words) == 0 {
			return
		}
		operation := words[0]
		if strings.HasPrefix(operation, "EVAL") {
			switch {
			case strings.Contains(words[3], ":events"):
				operation = Last
			case strings.Contains(words[3], ":rate"):
				operation = Rate
			case len(words) > 5:
				operation = Try
			}
		}
		f.count(operation)
		f.mu.Lock()
		raw := f.replies[operation]
		f.mu.Unlock()
		if raw == "" {
			raw = f.usual(operation, words)
		}
		if _, err := io.WriteString(conn, raw); err != nil {
			return
		}
	}
}

func (f *Fake) usual(operation string, words []string) string {
	switch operation {
	case Last:
		return bulk(strconv.Itoa(len(f.Entries())))
	case Rate:
		return ":0\r\n"
	case Try:
		return "*2\r\n:0\r\n:0\r\n"
	case Ended:
		return "$-1\r\n"
	case "XADD":
		f.Add(words[len(words)-1], 1)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stream = words[1]
		return bulk("1-0")
	case Read:
		entries := f.Entries()
		last, _ := strconv.Atoi(words[len(words)-1])
		if last = min(last, len(entries)); last == len(entries) {
			time.Sleep(20 * time.Millisecond)
			return "*-1\r\n"
		}
		found := entries[last:min(last+100, len(entries))]
		var b strings.Builder
		fmt.Fprintf(&b, "*1\r\n*2\r\n%s*%d\r\n", bulk(words[len(words)-2]), len(found))
		for i, value := range found {
			fmt.Fprintf(&b, "*2\r\n%s*2\r\n%s%s", bulk(strconv.Itoa(last+i+1)), bulk("e"), bulk(value))
		}
		return b.String()
	}
	return "+OK\r\n"
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// command reads one command.
func command(in *bufio.Reader) (words []string, err error) {
	count := 0
	if _, err := fmt.Fscanf(in, "*%d\r\n", &count); err != nil {
		return nil, err
	}
	for range count {
		long := 0
		if _, err := fmt.Fscanf(in, "$%d\r\n", &long); err != nil {
			return nil, err
		}
		word := make([]byte, long+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:long]))
	}
	return words, nil
}
