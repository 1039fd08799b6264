package oauth

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"math/big"
	"slices"
)

// RSA keys outside of these are refused: too weak, or so long that checking a signature is work.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// key is a public key of the issuer.
type key struct {
	public    crypto.PublicKey
	algorithm string // that it is for; "": any that fits
}

// readKey reads a JSON Web Key (RFC 7517) that signatures can be checked by.
func readKey(raw []byte) (id string, _ key, _ error) {
	var kind, use, algorithm, curve, n, e, x, y string
	var operations []string
	var private bool
	err := fields{"kty": text(&kind), "use": optional(text(&use)), "kid": optional(text(&id)), "alg": optional(text(&algorithm)),
		"crv": optional(text(&curve)), "n": optional(text(&n)), "e": optional(text(&e)), "x": optional(text(&x)), "y": optional(text(&y)),
		"key_ops": optional(list(&operations, text)), "d": present(&private)}.read(raw)
	if err != nil {
		return "", key{}, err
	}
	switch {
	case use != "" && use != "sig", operations != nil && !slices.Contains(operations, "verify"):
		return "", key{}, errors.New("the key is not for signatures")
	case private:
		return "", key{}, errors.New("the private key is published: anybody could sign with it")
	}
	var public crypto.PublicKey
	switch kind {
	case "RSA":
		public, err = rsaKey(n, e)
	case "EC":
		public, err = ecKey(curve, x, y)
	case "OKP":
		public, err = edKey(curve, x)
	default:
		err = errors.New("the key is of another kind")
	}
	return id, key{public, algorithm}, err
}

func rsaKey(n, e string) (crypto.PublicKey, error) {
	modulus, err := number(n)
	if err != nil {
		return nil, err
	}
	exponent, err := number(e)
	if err != nil {
		return nil, err
	}
	if modulus.BitLen() < minRSABits || modulus.BitLen() > maxRSABits || !exponent.IsInt64() || exponent.Int64() < 3 || exponent.Int64() > 1<<31-1 {
		return nil, errors.New("the key is too weak, or too long")
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
}

func number(text string) (*big.Int, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	return new(big.Int).SetBytes(b), err
}

var curves = map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}

func ecKey(name, x, y string) (crypto.PublicKey, error) {
	curve, known := curves[name]
	if !known {
		return nil, errors.New("the curve is not known")
	}
	size := (curve.Params().BitSize + 7) / 8
	point := []byte{4} // uncompressed
	for _, text := range []string{x, y} {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(b) > size {
			return nil, errors.New("the point is not on the curve")
		}
		point = append(append(point, bytes.Repeat([]byte{0}, size-len(b))...), b...)
	}
	return ecdsa.ParseUncompressedPublicKey(curve, point)
}

func edKey(curve, x string) (crypto.PublicKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(x)
	if err != nil || curve != "Ed25519" || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("the key is no Ed25519 key")
	}
	return ed25519.PublicKey(b), nil
}
