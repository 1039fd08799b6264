package mcp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/upstream"
)

// A sealed session id holds the state of its session, encrypted, so that every replica with the key goes on with it:
//
//	base64url(nonce 12 | AES-256-GCM(revision 1 | opened, Unix seconds 8) | tag 16), with the owner as additional data
//
// The owner is not in it: for another identity it cannot be opened.
const (
	sealedLength = 12 + 1 + 8 + 16
	minKey       = 32 // characters
)

var sealedEncoding = base64.RawURLEncoding.Strict()

// sealedSession is the state that a session id holds.
type sealedSession struct {
	revision Revision
	opened   time.Time
}

// Keys seal and open session ids: the first seals, each opens.
type Keys []cipher.AEAD

// NewKeys derives keys from secrets that all replicas share.
func NewKeys[T ~string](secrets []T) (Keys, error) {
	keys := Keys{}
	for i, secret := range secrets {
		if len(secret) < minKey {
			return nil, fmt.Errorf("key %d has %d characters; each must have at least %d, such as those of openssl rand -base64 32", i+1, len(secret), minKey)
		}
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, "bridgecheck mcp session", 32)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		keys = append(keys, aead)
	}
	return keys, nil
}

// seal makes the id of a new session; there is a key.
func (k Keys) seal(revision Revision, owner upstream.Identity, now time.Time) string {
	plain := []byte{byte(slices.Index(revisions, revision))}
	plain = binary.BigEndian.AppendUint64(plain, uint64(now.Unix()))
	return sealedEncoding.EncodeToString(k[0].Seal(nil, nil, plain, owner[:]))
}

// open reads an id that one of the keys sealed for the owner.
func (k Keys) open(id string, owner upstream.Identity) (s sealedSession, ok bool) {
	if len(k) == 0 || len(id) != sealedEncoding.EncodedLen(sealedLength) {
		return s, false
	}
	sealed, err := sealedEncoding.DecodeString(id)
	if err != nil {
		return s, false
	}
	for _, key := range k {
		plain, err := key.Open(nil, nil, sealed, owner[:])
		if err != nil || int(plain[0]) >= len(revisions) {
			continue
		}
		s.revision, s.opened = revisions[plain[0]], time.Unix(int64(binary.BigEndian.Uint64(plain[1:])), 0)
		return s, true
	}
	return s, false
}
