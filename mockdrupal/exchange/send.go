package exchange

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
)

// Send sends the response as it is.
func (x *Exchange) Send() {
	if x.Verb == http.MethodHead && x.Request.Method != http.MethodHead { // by an override
		x.Response.Body = nil
	}
	x.SendHead()
	if x.Request.Method != http.MethodHead {
		_ = x.SendBody(x.Response.Body) // a client that went away is no error of the site
	}
}

// SendHead sends status and headers, with the length of the body.
func (x *Exchange) SendHead() {
	if h := x.Response.Header; x.Response.Status != http.StatusNoContent && h.Get("Content-Length") == "" {
		x.Response.Header["Content-Length"] = []string{strconv.Itoa(len(x.Response.Body))}
	}
	x.SendChunkedHead()
}

// SendChunkedHead sends status and headers of a response whose length is not known.
func (x *Exchange) SendChunkedHead() {
	h := x.w.Header()
	maps.Copy(h, x.Response.Header)
	x.noteHead()
	x.w.WriteHeader(x.Response.Status)
}

func (x *Exchange) noteHead() {
	cookies := journal.SetCookiesOf(x.Response.Header)
	x.Note(func(e *journal.Entry) { e.Status, e.SetCookies = x.Response.Status, cookies })
}

// SendBody sends some bytes of the body and counts them. It fails when the client went away.
func (x *Exchange) SendBody(b []byte) error {
	n, err := x.w.Write(b)
	x.Note(func(e *journal.Entry) { e.BytesOut += int64(n) })
	return err
}

// smallBuffer is how many bytes the operating system may hold back for a client that reads slowly, where they are counted.
const smallBuffer = 64 << 10

// LimitSendBuffer makes the count of bytes that the connection took follow closely what the client reads.
func (x *Exchange) LimitSendBuffer() {
	if tcp, ok := x.conn.Net.(interface{ SetWriteBuffer(int) error }); ok {
		_ = tcp.SetWriteBuffer(smallBuffer) // else the count is coarser
	}
}

// Flush sends what net/http still holds back.
func (x *Exchange) Flush() { _ = http.NewResponseController(x.w).Flush() }

// Drop ends the connection. What was written may have reached the client.
func (x *Exchange) Drop() {
	x.Done = true
	conn, _, err := x.hijack()
	if err != nil {
		x.End()
		panic(http.ErrAbortHandler) // HTTP/2, or headers are out: the server ends the stream
	}
	conn.Close()
}

// Reset ends the connection with a TCP reset.
func (x *Exchange) Reset() {
	x.hangUp(func(conn net.Conn) {
		if tcp, ok := conn.(interface{ SetLinger(int) error }); ok {
			_ = tcp.SetLinger(0)
		}
	})
}

// Close ends the connection as a worker that died does: the client reads its end, and no error.
func (x *Exchange) Close() { x.hangUp(func(net.Conn) {}) }

func (x *Exchange) hangUp(before func(net.Conn)) {
	if conn, _ := x.take(); conn != nil {
		before(conn)
		conn.Close()
	}
}

func (x *Exchange) hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(x.w).Hijack()
}

// take takes the connection from net/http; nil where that does not give it, so that the connection ends.
func (x *Exchange) take() (net.Conn, *bufio.ReadWriter) {
	conn, rw, err := x.hijack()
	if err != nil {
		x.Drop()
		return nil, nil
	}
	x.Done = true
	return conn, rw
}

// sendPast writes the response onto a connection past net/http.
func (x *Exchange) sendPast(rw *bufio.ReadWriter, header http.Header, body func(io.Writer) (int, error), more []byte) {
	fmt.Fprintf(rw, "HTTP/1.1 %d %s\r\n", x.Response.Status, http.StatusText(x.Response.Status))
	_ = header.Write(rw)
	_, _ = rw.WriteString("\r\n")
	n, _ := body(rw)
	_, _ = rw.Write(more)
	_ = rw.Flush() // a client that went away is no error of the site
	x.noteHead()
	x.Note(func(e *journal.Entry) { e.BytesOut = int64(n) })
}

// excessTime is how long a connection with more bytes than a response has stays open.
const excessTime = 300 * time.Millisecond

// SendWith writes the response onto the connection past net/http, with more bytes behind it, and leaves it open for a while:
// a client that does not look for more uses it for the next request.
func (x *Exchange) SendWith(more []byte) { x.sendAndClose(more, excessTime) }

// SendAndClose writes the response as if the connection stayed open, and closes it.
func (x *Exchange) SendAndClose() { x.sendAndClose(nil, 0) }

// sendAndClose closes the connection after a time in which it reads nothing.
func (x *Exchange) sendAndClose(more []byte, after time.Duration) {
	conn, rw := x.take()
	if conn == nil {
		return
	}
	header := x.Response.Header.Clone()
	header.Set("Content-Length", strconv.Itoa(len(x.Response.Body)))
	x.sendPast(rw, header, func(w io.Writer) (int, error) { return w.Write(x.Response.Body) }, more)
	go func() {
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(after))
		_, _ = io.Copy(io.Discard, rw)
	}()
}

// SendRaw writes the response onto the connection past net/http, with any Content-Length, and closes the connection.
func (x *Exchange) SendRaw(contentLength int) {
	x.sendUnchecked("Content-Length", strconv.Itoa(contentLength), func(w io.Writer) (int, error) { return w.Write(x.Response.Body) })
}

// SendUnended writes the response onto the connection in chunks, and closes the connection in place of the last, empty one.
func (x *Exchange) SendUnended() {
	x.sendUnchecked("Transfer-Encoding", "chunked", func(w io.Writer) (int, error) {
		_, err := fmt.Fprintf(w, "%x\r\n%s\r\n", len(x.Response.Body), x.Response.Body)
		return len(x.Response.Body), err
	})
}

// sendUnchecked writes the response onto the connection past net/http, with a header that says how the body is framed.
func (x *Exchange) sendUnchecked(name, value string, body func(io.Writer) (int, error)) {
	conn, rw := x.take()
	if conn == nil {
		return
	}
	defer conn.Close()
	header := x.Response.Header.Clone()
	header.Del("Content-Length")
	header.Set(name, value)
	header.Set("Connection", "close")
	x.sendPast(rw, header, body, nil)
}
