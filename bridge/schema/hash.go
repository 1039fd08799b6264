package schema

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
)

// hash is the same for values that JSON Schema takes for equal: numbers by their value, objects whatever the order of
// their members. The seed is unknown to the sender of the values, so that different values share a hash once in 10¹⁹
// pairs.
func (ix *index) hash(at uint32, seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	n := ix.nodes[at]
	h.WriteByte(byte(n.kind))
	switch n.kind {
	case isString:
		h.Write(ix.text(at))
	case isNumber:
		d := parseDecimal(ix.raw(at))
		d.writeTo(&h)
	case isArray:
		for i := at + 1; i < n.next; i = ix.nodes[i].next {
			writeHash(&h, ix.hash(i, seed))
		}
	case isObject:
		var sum uint64 // whatever the order
		for i := at + 1; i < n.next; i = ix.nodes[i+1].next {
			var member maphash.Hash
			member.SetSeed(seed)
			writeHash(&member, ix.hash(i, seed))
			writeHash(&member, ix.hash(i+1, seed))
			sum += member.Sum64()
		}
		writeHash(&h, sum)
	default:
		h.Write(ix.raw(at))
	}
	return h.Sum64()
}

func writeHash(h *maphash.Hash, sum uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], sum)
	h.Write(b[:])
}

// decimal is a number as its digits say it: ± 0.d₁d₂… × 10^exponent, without zeros at either end.
type decimal struct {
	negative bool
	whole    []byte // digits before the point
	fraction []byte // digits after it
	exponent int    // of ten, of the last digit of whole
}

// parseDecimal reads a number's literal without any arithmetic on it.
func parseDecimal(raw []byte) decimal {
	var d decimal
	if len(raw) > 0 && raw[0] == '-' {
		d.negative, raw = true, raw[1:]
	}
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		d.exponent, _ = strconv.Atoi(string(raw[i+1:])) // the parser bounds it
		raw = raw[:i]
	}
	d.whole = raw
	if before, after, ok := bytes.Cut(raw, []byte{'.'}); ok {
		d.whole, d.fraction = before, bytes.TrimRight(after, "0")
	}
	return d
}

// zeros counts the zeros at the end of the number's digits; all is true where it has no other digit.
func (d decimal) zeros() (n int, all bool) {
	if len(d.fraction) > 0 {
		return 0, false
	}
	for n = 0; n < len(d.whole) && d.whole[len(d.whole)-1-n] == '0'; n++ {
	}
	return n, n == len(d.whole)
}

// integer reports whether the number has no fraction.
func (d decimal) integer() bool {
	zeros, all := d.zeros()
	return all || d.exponent-len(d.fraction)+zeros >= 0
}

// text spells a number without a fraction as an integer; false where that has more digits than every integer of PHP may.
func (d decimal) text() (string, bool) {
	const longest = 18
	digits := append(slices.Clone(d.whole), d.fraction...)
	shift := d.exponent - len(d.fraction)
	switch digits = bytes.TrimLeft(digits, "0"); {
	case len(digits) == 0:
		return "0", true
	case shift < 0:
		digits = digits[:max(0, len(digits)+shift)]
	case len(digits)+shift > longest:
		return "", false
	default:
		digits = append(digits, bytes.Repeat([]byte("0"), shift)...)
	}
	if len(digits) > longest {
		return "", false
	}
	if d.negative {
		return "-" + string(digits), true
	}
	return string(digits), true
}

func (d decimal) writeTo(h *maphash.Hash) {
	zeros, all := d.zeros()
	if all {
		h.WriteByte('0')
		return
	}
	if d.negative {
		h.WriteByte('-')
	}
	digits := 0
	write := func(part []byte) {
		for _, c := range part {
			if digits > 0 || c != '0' {
				h.WriteByte(c)
				digits++
			}
		}
	}
	write(d.whole[:len(d.whole)-zeros])
	write(d.fraction)
	writeHash(h, uint64(int64(d.exponent-len(d.fraction)+zeros)))
}

// small returns the number where it is whole and short, so that comparing it needs no arithmetic on long numbers.
func (d decimal) small(raw []byte) (int64, bool) {
	const longest = 18
	if d.exponent != 0 || len(d.fraction) > 0 || len(d.whole) > longest || bytes.IndexByte(raw, '.') >= 0 {
		return math.MaxInt64, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}
