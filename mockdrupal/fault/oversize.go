package fault

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// defaultSize is how many bytes an oversized response has unless the fault says otherwise.
const defaultSize = 256 << 20

// blockBytes is how much of an oversized response is made at a time: it is never held as a whole.
const blockBytes = 64 << 10

// value is an oversized JSON value.
type value interface {
	start() string
	next() []byte // the next block of about blockBytes; valid until the following call
	end() string
}

// longString is a text that repeats a block.
type longString struct{ block []byte }

func (*longString) start() string  { return `"` }
func (l *longString) next() []byte { return l.block }
func (*longString) end() string    { return `"` }

// digits are hexadecimal: hard to compress, easy to make.
var digits = sync.OnceValue(func() []byte {
	random, block := rand.New(rand.NewPCG(1, 2)), make([]byte, blockBytes)
	for i := range block {
		block[i] = "0123456789abcdef"[random.IntN(16)]
	}
	return block
})

// zeros compress a thousandfold.
var zeros = sync.OnceValue(func() []byte { return bytes.Repeat([]byte("0"), blockBytes) })

// manyMembers is an object of members with a name and a number each.
type manyMembers struct {
	n     int64
	block []byte
}

func (*manyMembers) start() string { return `{"m0":0` }
func (*manyMembers) end() string   { return `}` }
func (m *manyMembers) next() []byte {
	m.block = m.block[:0]
	for len(m.block) < blockBytes {
		m.n++
		m.block = strconv.AppendInt(append(m.block, `,"m`...), m.n, 10)
		m.block = strconv.AppendInt(append(m.block, `":`...), m.n, 10)
	}
	return m.block
}

// oversize sends a valid response with an oversized value in it.
func (v *action) oversize(big value) { v.stream(big, plain{v.Exchange}) }

// hugeGzip sends zeros gzip-encoded to a client that accepts that, else the long string as it is.
func hugeGzip(v *action) {
	if !strings.Contains(strings.ToLower(v.Request.Header.Get("Accept-Encoding")), "gzip") {
		v.oversize(&longString{digits()})
		return
	}
	v.stream(&longString{zeros()}, &gzipped{x: v.Exchange})
}

// stream sends head, value and tail of a response until it has the fault's size or the client goes away.
func (v *action) stream(big value, out output) {
	head, tail := v.envelope()
	if v.Done {
		return
	}
	v.Done = true
	v.LimitSendBuffer()
	v.Response.Header.Del("Content-Length")
	out.header(v.Response.Header)
	v.SendChunkedHead()
	if v.Request.Method == http.MethodHead {
		return
	}
	size := cmp.Or(v.fault.Size, defaultSize) - int64(len(tail)+len(big.end()))
	block := []byte(head + big.start())
	for first := true; first || size > 0; first = false {
		if out.send(block) != nil {
			return
		}
		size -= int64(len(block))
		block = big.next()
	}
	if out.send([]byte(big.end()+tail)) == nil {
		_ = out.close() // a client that went away is no error of the site
	}
}

// envelope is what stands before and behind the value in a valid response, whose status and headers it sets: on
// /jsonrpc a response object with the request's id (for a list of calls a list, with the value in its last response), on
// other routes the site's own response with a further member.
func (v *action) envelope() (head, tail string) {
	if v.Route != route.JSONRPC {
		return v.furtherMember()
	}
	v.Response = exchange.NewResponse(http.StatusOK, exchange.JSONType, nil)
	ids := []string{}
	for _, c := range v.Calls() {
		if c.ID != nil {
			ids = append(ids, string(c.ID))
		}
	}
	if len(ids) == 0 {
		ids = []string{"null"}
	}
	open := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` }
	last := len(ids) - 1
	if php.Elements(v.Message()) == nil {
		return open(ids[last]), "}"
	}
	var b strings.Builder
	b.WriteByte('[')
	for _, id := range ids[:last] {
		b.WriteString(open(id) + "null},")
	}
	return b.String() + open(ids[last]), "}]"
}

// furtherMember adds a member to the object that the site responds with. Any other response becomes an object.
func (v *action) furtherMember() (head, tail string) {
	if v.Response == nil {
		v.respond()
	}
	if v.Done || v.Response == nil {
		v.Done = true
		return "", ""
	}
	head, tail = `{"filler":`, "}"
	if members := php.Members(v.Response.Body); len(members) > 0 {
		tail = "," + string(bytes.TrimSpace(v.Response.Body)[1:])
	}
	return head, tail
}

// output is how an oversized response is encoded.
type output interface {
	header(http.Header)
	send([]byte) error
	close() error
}

type plain struct{ x *exchange.Exchange }

func (plain) header(http.Header)    {}
func (p plain) send(b []byte) error { return p.x.SendBody(b) }
func (plain) close() error          { return nil }

// gzipped writes a gzip stream. Blocks are compressed on their own, so that a block that repeats is compressed once.
type gzipped struct {
	x        *exchange.Exchange
	started  bool
	checksum uint32
	size     uint32
}

func (*gzipped) header(h http.Header) { h["Content-Encoding"] = []string{"gzip"} }

func (g *gzipped) send(b []byte) error {
	var out []byte
	if !g.started {
		g.started = true
		out = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}
	}
	g.checksum = crc32.Update(g.checksum, crc32.IEEETable, b)
	g.size += uint32(len(b)) // modulo 2^32, as the format has it
	if len(b) == blockBytes && &b[0] == &zeros()[0] {
		return g.x.SendBody(append(out, deflatedZeros()...))
	}
	return g.x.SendBody(append(out, deflate(b)...))
}

func (g *gzipped) close() error {
	trailer := []byte{1, 0, 0, 0xff, 0xff} // an empty last block
	trailer = binary.LittleEndian.AppendUint32(trailer, g.checksum)
	return g.x.SendBody(binary.LittleEndian.AppendUint32(trailer, g.size))
}

var deflatedZeros = sync.OnceValue(func() []byte { return deflate(zeros()) })

// deflate compresses a block without reference to those before it, and ends it at a whole byte.
func deflate(b []byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err == nil {
		_, _ = w.Write(b) // a buffer takes everything
		err = w.Flush()
	}
	if err != nil {
		panic("compressing into memory: " + err.Error())
	}
	return out.Bytes()
}
