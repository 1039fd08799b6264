package mcp

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/keys"
)

// A sealed session id holds the state of its session, encrypted, so that every replica with the key goes on with it. The
// session's owner is what it is bound to: for another identity it cannot be opened.
//
//	base64url(nonce 12 | AES-256-GCM(revision 1 | opened, Unix seconds 8) | tag 16)
const stateLength = 1 + 8

var sealedEncoding = base64.RawURLEncoding.Strict()

// sessionState is what a session id holds.
type sessionState struct {
	revision Revision
	opened   time.Time
}

// sealing is how the state of sessions is put into their ids; without keys it is not.
type sealing struct {
	keys *keys.Ring
	life time.Duration // of a session
}

// seal makes the id of a session; there is a key.
func (s sealing) seal(state sessionState, owner caller.Identity) string {
	text := []byte{byte(slices.Index(revisions, state.revision))}
	text = binary.BigEndian.AppendUint64(text, uint64(state.opened.Unix()))
	return sealedEncoding.EncodeToString(s.keys.Seal(text, owner[:]))
}

// open reads an id that one of the keys sealed for the owner.
func (s sealing) open(id string, owner caller.Identity) (state sessionState, ok bool) {
	if len(id) != sealedEncoding.EncodedLen(stateLength+keys.Overhead) {
		return state, false
	}
	sealed, err := sealedEncoding.DecodeString(id)
	if err != nil {
		return state, false
	}
	text, ok := s.keys.Open(sealed, owner[:])
	if !ok || int(text[0]) >= len(revisions) {
		return state, false
	}
	return sessionState{revisions[text[0]], time.Unix(int64(binary.BigEndian.Uint64(text[1:])), 0)}, true
}
