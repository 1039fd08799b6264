package filter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Naming is how tools are named after method ids.
type Naming string

// The two ways: the id unchanged, or with every character outside [A-Za-z0-9_-] turned into an underscore.
const (
	NamingID         Naming = "id"
	NamingUnderscore Naming = "underscore"
)

// maxName is the longest underscored name; longer ones are cut and end with a hash of the id.
const maxName = 64

// Names returns the name of each method id, in order. Names are distinct. An id that would share its name with another
// one takes a hash of itself as a suffix, unless it is that name literally, so that its name does not depend on order.
func (n Naming) Names(ids []string) []string {
	names := make([]string, len(ids))
	if n != NamingUnderscore {
		copy(names, ids)
		return names
	}
	taken := map[string]int{}
	for i, id := range ids {
		names[i] = underscored(id)
		taken[names[i]]++
	}
	for i, id := range ids {
		if taken[names[i]] > 1 && names[i] != id {
			names[i] = hashed(names[i], id)
		}
	}
	return names
}

func underscored(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
	if len(name) > maxName {
		return hashed(name, id)
	}
	return name
}

// hashed cuts a name so that a suffix fits, which distinguishes ids.
func hashed(name, id string) string {
	sum := sha256.Sum256([]byte(id))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(suffix))] + suffix
}
