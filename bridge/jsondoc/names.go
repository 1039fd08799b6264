package jsondoc

import (
	"bytes"
	"hash/maphash"
)

// names is the set of an object's members: the parser's list from a place on, for most objects are small.
type names struct {
	from int
	many map[uint64]struct{} // hashes of a large one's
}

// seed makes the hashes of names unpredictable to the sender: two of a million collide once in 10⁷ documents.
var seed = maphash.MakeSeed()

// add takes a name into an open object's set, the innermost; false where it is there already.
func (p *parser) add(set *names, name []byte) bool {
	const few = 12
	if set.many != nil {
		hash := maphash.Bytes(seed, name)
		if _, have := set.many[hash]; have {
			return false
		}
		set.many[hash] = struct{}{}
		return true
	}
	for _, have := range p.names[set.from:] {
		if bytes.Equal(have, name) {
			return false
		}
	}
	if p.names == nil {
		p.names = make([][]byte, 0, few/2)
	}
	if p.names = append(p.names, name); len(p.names)-set.from <= few {
		return true
	}
	set.many = make(map[uint64]struct{}, 4*few)
	for _, have := range p.names[set.from:] {
		set.many[maphash.Bytes(seed, have)] = struct{}{}
	}
	return true
}
