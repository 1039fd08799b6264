package shared

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // the protocol names scripts by it
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The store is not trusted: a reply is bounded before memory is taken for it, and one that breaks the protocol ends the
// connection.

// bounds are what one reply may cost.
type bounds struct{ bytes, items, depth int }

// The bounds of replies to commands, and of a read of the stream.
var (
	small  = bounds{4 << 10, 8, 2}
	stream = bounds{1 << 20, 8 * batch, 8}
)

const (
	maxWaiting = 4096 // commands that are on their way at one time
	bufferSize = 16 << 10
)

// reply is one value of RESP2, the protocol of Redis. kind is its first byte; 0 is the null of either type.
type reply struct {
	kind  byte
	text  []byte // of a status or a bulk string
	n     int64
	items []reply
}

// storeError is a reply by which the store refuses a command.
type storeError string

func (e storeError) Error() string { return fmt.Sprintf("the store refuses it: %.200q", string(e)) }

// errOdd is a reply that no store gives.
var errOdd = errors.New("an odd reply of the store")

func odd(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errOdd, fmt.Sprintf(format, args...))
}

// read reads one reply within its bounds.
func (b *bounds) read(r *bufio.Reader, depth int) (v reply, err error) {
	if depth > b.depth {
		return v, odd("it is nested deeper than %d levels", b.depth)
	}
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return v, odd("a line is longer than %d bytes", bufferSize)
	case err != nil:
		return v, err
	case len(line) < 3 || line[len(line)-2] != '\r':
		return v, odd("a line has no type or end")
	}
	if b.bytes -= len(line); b.bytes < 0 {
		return v, odd("it is too long")
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return reply{kind: kind, text: bytes.Clone(rest)}, nil
	case '-':
		return v, storeError(rest[:min(len(rest), 200)])
	case ':', '$', '*':
	default:
		return v, odd("%q is no type", kind)
	}
	n, err := strconv.ParseInt(string(rest), 10, 64)
	switch {
	case err != nil:
		return v, odd("a number has no digits or too many")
	case kind == ':':
		return reply{kind: kind, n: n}, nil
	case n == -1:
		return v, nil
	case n < 0:
		return v, odd("a length is negative")
	case kind == '*':
		return b.array(r, n, depth)
	case n > int64(b.bytes):
		return v, odd("a string of %d bytes", n)
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(r, text); err != nil {
		return v, err
	}
	if b.bytes -= len(text); !bytes.HasSuffix(text, []byte("\r\n")) {
		return v, odd("a string does not end where it should")
	}
	return reply{kind: kind, text: text[:n]}, nil
}

func (b *bounds) array(r *bufio.Reader, n int64, depth int) (reply, error) {
	if n > int64(b.items) {
		return reply{}, odd("a list of %d items", n)
	}
	b.items -= int(n)
	v := reply{kind: '*', items: make([]reply, n)}
	for i := range v.items {
		var err error
		if v.items[i], err = b.read(r, depth+1); err != nil {
			if refused := storeError(""); errors.As(err, &refused) {
				err = odd("an error within a list") // what follows it was not read
			}
			return v, err
		}
	}
	return v, nil
}

// client is one connection to the store. Commands of many callers share it; replies come in the order of commands.
type client struct {
	conn net.Conn

	mu      sync.Mutex
	out     []byte        // commands that are not sent yet
	wake    chan struct{} // something is in out
	waiting chan waiter   // for a reply each; the order is that of out
	broken  chan struct{} // closed when the connection has ended, after why is set
	why     error
	end     sync.Once
}

type waiter struct {
	bounds bounds
	reply  chan<- result
}

type result struct {
	reply
	err error
}

// address is where the store is, and as whom to speak to it.
type address struct {
	host           string // with its port
	user, password string
	database       string // "": the first
	tls            *tls.Config
}

// parseAddress reads redis://[user:password@]host[:port][/database], or rediss:// for TLS. No message has the password.
func parseAddress(text string) (a address, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return a, errors.New("must be the address of a store without parameters, such as redis://127.0.0.1:6379; rediss:// for TLS")
	}
	if a.database = strings.Trim(u.Path, "/"); a.database != "" {
		if _, err := strconv.ParseUint(a.database, 10, 16); err != nil {
			return a, errors.New("must name a database of the store by its number, as in redis://127.0.0.1:6379/1")
		}
	}
	port := cmp.Or(u.Port(), "6379")
	a.host = net.JoinHostPort(u.Hostname(), port)
	a.user = u.User.Username()
	a.password, _ = u.User.Password()
	if u.Scheme == "rediss" {
		a.tls = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	return a, nil
}

// dial opens a connection that ends with ctx, and authenticates.
func (a address) dial(ctx context.Context) (*client, error) {
	opening, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := a.connect(opening)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, wake: make(chan struct{}, 1), waiting: make(chan waiter, maxWaiting), broken: make(chan struct{})}
	context.AfterFunc(ctx, func() { c.lose(context.Cause(ctx)) })
	go c.send()
	go c.receive()
	greeting := [][]string{{"CLIENT", "SETNAME", "bridgecheck"}}
	if a.database != "" {
		greeting = append([][]string{{"SELECT", a.database}}, greeting...)
	}
	switch {
	case a.user != "":
		greeting = append([][]string{{"AUTH", a.user, a.password}}, greeting...)
	case a.password != "":
		greeting = append([][]string{{"AUTH", a.password}}, greeting...)
	}
	for _, command := range greeting {
		_, err := c.do(opening, small, command...)
		if refused := storeError(""); err != nil && !(command[0] == "CLIENT" && errors.As(err, &refused)) { // an account may lack it
			c.lose(err)
			return nil, fmt.Errorf("%s: %w", command[0], err)
		}
	}
	return c, nil
}

func (a address) connect(ctx context.Context) (net.Conn, error) {
	if a.tls != nil {
		return (&tls.Dialer{Config: a.tls}).DialContext(ctx, "tcp", a.host)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", a.host)
}

// lose ends the connection, and all that wait for it.
func (c *client) lose(why error) {
	c.end.Do(func() {
		c.why = why
		close(c.broken)
		c.conn.Close()
	})
}

// do sends a command and gives its reply. What comes after ctx has ended is dropped.
func (c *client) do(ctx context.Context, b bounds, command ...string) (reply, error) {
	got := make(chan result, 1)
	if err := c.queue(waiter{b, got}, command); err != nil {
		return reply{}, err
	}
	select {
	case r := <-got:
		return r.reply, r.err
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	case <-c.broken:
		return reply{}, c.why
	}
}

func (c *client) queue(w waiter, command []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.waiting <- w:
	default:
		return errors.New("too many commands wait for the store")
	}
	c.out = fmt.Appendf(c.out, "*%d\r\n", len(command))
	for _, word := range command {
		c.out = append(c.out, '$')
		c.out = strconv.AppendInt(c.out, int64(len(word)), 10)
		c.out = append(append(append(c.out, "\r\n"...), word...), "\r\n"...)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// send sends commands, those that came meanwhile at once.
func (c *client) send() {
	var sending []byte
	for {
		select {
		case <-c.wake:
		case <-c.broken:
			return
		}
		c.mu.Lock()
		sending, c.out = c.out, sending[:0]
		c.mu.Unlock()
		c.conn.SetWriteDeadline(time.Now().Add(dialTime)) //nolint:errcheck // then Write fails
		if _, err := c.conn.Write(sending); err != nil {
			c.lose(err)
			return
		}
		if cap(sending) > bufferSize {
			sending = nil
		}
	}
}

// receive reads the reply to each command.
func (c *client) receive() {
	in := bufio.NewReaderSize(c.conn, bufferSize)
	for {
		if _, err := in.Peek(1); err != nil {
			c.lose(err)
			return
		}
		select {
		case w := <-c.waiting:
			v, err := w.bounds.read(in, 1)
			if refused := storeError(""); err != nil && !errors.As(err, &refused) {
				c.lose(err)
				return
			}
			w.reply <- result{v, err}
		default: // a command is in waiting before it is sent
			c.lose(odd("nobody asked for it"))
			return
		}
	}
}

// script is a script that the store keeps by its digest.
type script struct{ text, digest string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
	return script{text, hex.EncodeToString(sum[:])}
}

// run runs a script, and sends it where the store does not have it.
func (c *client) run(ctx context.Context, s script, keys, args []string) (reply, error) {
	command := append(append([]string{"EVALSHA", s.digest, strconv.Itoa(len(keys))}, keys...), args...)
	v, err := c.do(ctx, small, command...)
	if refused := storeError(""); errors.As(err, &refused) && strings.HasPrefix(string(refused), "NOSCRIPT") {
		command[0], command[1] = "EVAL", s.text
		return c.do(ctx, small, command...)
	}
	return v, err
}

// integers are the items of a list of so many integers.
func (v reply) integers(count int) ([]int64, error) {
	if v.kind != '*' || len(v.items) != count {
		return nil, odd("not a list of %d integers", count)
	}
	numbers := make([]int64, count)
	for i, item := range v.items {
		if item.kind != ':' {
			return nil, odd("not a list of %d integers", count)
		}
		numbers[i] = item.n
	}
	return numbers, nil
}
