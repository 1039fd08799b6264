// Package keys derives keys from secrets that the replicas of a bridge share. The first secret seals, each opens, so that
// they can be replaced one replica at a time.
package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// minSecret is the length of the shortest secret, in characters.
const minSecret = 32

// Overhead is how much longer a sealed text is, in bytes: a nonce of 12 and a tag of 16.
const Overhead = 28

// Ring is the keys for one purpose. Those of different purposes have nothing in common.
type Ring struct {
	seals []cipher.AEAD // AES-256-GCM with a random nonce
	mac   []byte
}

// New derives keys by HKDF-SHA-256. Without secrets the ring is empty.
func New[T ~string](secrets []T, purpose string) (*Ring, error) {
	r := &Ring{}
	for i, secret := range secrets {
		if len(secret) < minSecret {
			return nil, fmt.Errorf("key %d has %d characters; each must have at least %d, such as those of openssl rand -base64 32", i+1, len(secret), minSecret)
		}
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, "bridgecheck "+purpose, 64)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(key[:32])
		if err != nil {
			return nil, err
		}
		seal, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		if r.seals = append(r.seals, seal); i == 0 {
			r.mac = key[32:]
		}
	}
	return r, nil
}

// Empty reports whether there is no key.
func (r *Ring) Empty() bool { return r == nil || len(r.seals) == 0 }

// Seal encrypts a text; Open needs the same bound. The ring is not empty.
func (r *Ring) Seal(text, bound []byte) []byte { return r.seals[0].Seal(nil, nil, text, bound) }

// Open decrypts what one of the keys sealed with the same bound.
func (r *Ring) Open(sealed, bound []byte) (text []byte, ok bool) {
	if r.Empty() {
		return nil, false
	}
	for _, key := range r.seals {
		if text, err := key.Open(nil, nil, sealed, bound); err == nil {
			return text, true
		}
	}
	return nil, false
}

// Digest names a text so that only a holder of the first key can find out which. The ring is not empty.
func (r *Ring) Digest(text []byte) []byte {
	h := hmac.New(sha256.New, r.mac)
	h.Write(text)
	return h.Sum(nil)[:16]
}
