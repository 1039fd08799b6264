package oauth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
)

// fields are the members of a security document that the bridge reads, by their exact names.
type fields map[string]func(jsontext.Value) error

// read reads a security document: the header or the claims of a token, or a response of the authorization server. It is the
// only decoder of such documents, since encoding/json ignores the case of names and takes the last of two members: a token
// could hold one subject for its issuer and another for the bridge. A name that occurs twice, at any depth, a value of
// another type and bytes after the object are errors. Where it fails, some members may have been set.
func (want fields) read(document []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(document), jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))
	if open, err := d.ReadToken(); err != nil {
		return err
	} else if open.Kind() != '{' {
		return errors.New("the document is not a JSON object")
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		member := name.String() // the token is overwritten by the next one
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if set, ok := want[member]; ok {
			if err := set(value); err != nil {
				return fmt.Errorf("member %s: %w", member, err)
			}
		}
	}
	if _, err := d.ReadToken(); err != nil { // the closing brace
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("the document goes on after its object")
	}
	return nil
}

// optional takes null for a member that is not there.
func optional(set func(jsontext.Value) error) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() == 'n' {
			return nil
		}
		return set(v)
	}
}

func text(into *string) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != '"' {
			return errors.New("must be a string")
		}
		b, err := jsontext.AppendUnquote(nil, v)
		*into = string(b)
		return err
	}
}

func boolean(into *bool) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if k := v.Kind(); k != 't' && k != 'f' {
			return errors.New("must be true or false")
		}
		*into = v.Kind() == 't'
		return nil
	}
}

// present is set by a member of any type.
func present(into *bool) func(jsontext.Value) error {
	return func(jsontext.Value) error { *into = true; return nil }
}

func integer(into *int64) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return errors.New("must be a whole number")
		}
		*into = n
		return nil
	}
}

// maxInstant is the year 9999: what lies behind it is no time that a token could mean.
const maxInstant = 253402300799

// instant reads seconds since 1970 (NumericDate of RFC 7519).
func instant(into **jwt.NumericDate) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		seconds, err := strconv.ParseFloat(string(v), 64)
		if v.Kind() != '0' || err != nil || math.Abs(seconds) > maxInstant {
			return errors.New("must be a time in seconds")
		}
		whole, part := math.Modf(seconds)
		*into = jwt.NewNumericDate(time.Unix(int64(whole), int64(part*1e9)))
		return nil
	}
}

// list reads an array, each item by its own reader.
func list[T any](into *[]T, item func(*T) func(jsontext.Value) error) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		d := jsontext.NewDecoder(bytes.NewBuffer(v))
		if open, err := d.ReadToken(); err != nil || open.Kind() != '[' {
			return errors.New("must be a list")
		}
		items := []T{}
		for d.PeekKind() != ']' {
			value, err := d.ReadValue()
			if err != nil {
				return err
			}
			var read T
			if err := item(&read)(value); err != nil {
				return err
			}
			items = append(items, read)
		}
		*into = items
		return nil
	}
}

// textOrList reads a string as what split makes of it, or a list of strings.
func textOrList[L ~[]string](into *L, split func(string) []string) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		var one string
		if v.Kind() == '"' {
			err := text(&one)(v)
			*into = split(one)
			return err
		}
		var many []string
		err := list(&many, text)(v)
		*into = many
		return err
	}
}

// raw keeps a value as it is.
func raw(into *jsontext.Value) func(jsontext.Value) error {
	return func(v jsontext.Value) error { *into = v.Clone(); return nil }
}

// claims are those of a token that matter here.
type claims struct {
	jwt.RegisteredClaims
	Scope    []string // Drupal writes a list, RFC 9068 one string with blanks
	ClientID string
	Party    string // azp, as others call client_id
}

// size is how many bytes they hold.
func (c claims) size() int {
	n := len(c.Issuer) + len(c.Subject) + len(c.ClientID) + len(c.Party)
	for _, text := range slices.Concat(c.Audience, c.Scope) {
		n += 24 + len(text)
	}
	return n
}

// fields are the members of the claims, and of an introspection response (RFC 7662), which has the same.
func (c *claims) fields() fields {
	return fields{
		"iss": text(&c.Issuer), "sub": text(&c.Subject),
		"aud": textOrList(&c.Audience, func(one string) []string { return []string{one} }),
		"exp": instant(&c.ExpiresAt), "nbf": instant(&c.NotBefore), "iat": instant(&c.IssuedAt),
		"scope": optional(textOrList(&c.Scope, strings.Fields)), "client_id": optional(text(&c.ClientID)), "azp": optional(text(&c.Party)),
	}
}
