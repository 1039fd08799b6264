package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
)

// Credentials is what an account authenticates with.
type Credentials struct {
	Password string
	Tokens   map[string]string // by the TOKEN of bearer:TOKEN; "" for bearer alone
}

// CredentialsOf finds an account's credentials; the second result is false for an account that is not known.
type CredentialsOf func(account string) (Credentials, bool)

// SiteCredentials takes the credentials from a site file. A token is known by its value, whatever its account, NAME for
// NAME-token too; bearer alone stands for the account's first.
func SiteCredentials(site *fixtures.Site) CredentialsOf {
	return func(account string) (Credentials, bool) {
		u, ok := site.User(account)
		if !ok {
			return Credentials{}, false
		}
		c := Credentials{Password: u.Password, Tokens: map[string]string{}}
		for _, other := range site.Users {
			for _, t := range other.Tokens {
				c.Tokens[strings.TrimSuffix(t.Value, "-token")] = t.Value
			}
		}
		for _, other := range site.Users {
			for _, t := range other.Tokens {
				c.Tokens[t.Value] = t.Value
			}
		}
		if len(u.Tokens) > 0 {
			c.Tokens[""] = u.Tokens[0].Value
		}
		return c, true
	}
}

// EnvironmentCredentials takes passwords from BRIDGECHECK_PASSWORD_ACCOUNT and bearer tokens from
// BRIDGECHECK_TOKEN_ACCOUNT, the account's name in upper case with _ for all but letters and digits.
func EnvironmentCredentials(lookup func(string) (string, bool)) CredentialsOf {
	return func(account string) (Credentials, bool) {
		password, hasPassword := lookup(passwordVariable(account))
		token, hasToken := lookup("BRIDGECHECK_TOKEN_" + variableName(account))
		c := Credentials{Password: password}
		if hasToken {
			c.Tokens = map[string]string{"": token}
		}
		return c, hasPassword || hasToken
	}
}

func passwordVariable(account string) string { return "BRIDGECHECK_PASSWORD_" + variableName(account) }

func variableName(account string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(account))
}

// FileCredentials reads credentials from a JSON file: {"ACCOUNT": {"password": "…", "tokens": {"NAME": "…"}}}, where the
// empty name stands for bearer alone.
func FileCredentials(file string) (CredentialsOf, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials: %w", withoutPath(err))
	}
	var accounts map[string]struct {
		Password string            `json:"password"`
		Tokens   map[string]string `json:"tokens"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&accounts); err != nil {
		return nil, fmt.Errorf("reading the credentials in %s, up to byte %d: %w", file, dec.InputOffset(), err)
	}
	return func(account string) (Credentials, bool) {
		a, ok := accounts[account]
		return Credentials{Password: a.Password, Tokens: a.Tokens}, ok
	}, nil
}

// withoutPath keeps an error from naming its file twice.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}
