package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Variable is the environment variable that stands for the secret of a credential of e: the identity, and PASSWORD for
// HTTP Basic, TOKEN for another Authorization, the header's name for any other header.
func (e Exchange) Variable(c Credential) string {
	kind := c.Header
	switch {
	case c.User != "":
		kind = "password"
	case http.CanonicalHeaderKey(c.Header) == "Authorization":
		kind = "token"
	}
	return strings.ToUpper(shellName(e.Identity + "_" + kind))
}

// shellName replaces what may not stand in the name of a shell variable.
func shellName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}

// credential returns the one that a header holds.
func (e Exchange) credential(header string) (Credential, bool) {
	i := slices.IndexFunc(e.Credentials, func(c Credential) bool {
		return http.CanonicalHeaderKey(c.Header) == http.CanonicalHeaderKey(header)
	})
	if i < 0 {
		return Credential{}, false
	}
	return e.Credentials[i], true
}

// Curl is a command line for a POSIX shell that sends e's request again. Only the variables of its credentials are
// expanded in it; all else is quoted data. It is "" where the report does not hold the whole request.
func (e Exchange) Curl() string {
	m := e.Request
	if e.repeatable() != nil {
		return ""
	}
	words := []string{"curl", "-i"}
	switch {
	case m.Method == http.MethodGet && m.Body == "":
	case m.Method == http.MethodHead && m.Body == "":
		words = append(words, "-I")
	default: // with a body curl would send a POST
		words = append(words, "-X", quote(m.Method))
	}
	if strings.ContainsAny(m.URL, "[]{}") { // of which curl would make several requests
		words = append(words, "-g")
	}
	typed := false
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		typed = typed || http.CanonicalHeaderKey(name) == "Content-Type"
		switch c, secret := e.credential(name); {
		case !secret:
			words = append(words, "-H", quote(name+": "+m.Header[name]))
		case c.User != "":
			words = append(words, "-u", withVariable(c.User+":", e.Variable(c)))
		case c.Scheme != "":
			words = append(words, "-H", withVariable(name+": "+c.Scheme+" ", e.Variable(c)))
		default:
			words = append(words, "-H", withVariable(name+": ", e.Variable(c)))
		}
	}
	if m.Body != "" && !typed { // else curl says that it is a form
		words = append(words, "-H", "Content-Type:")
	}
	switch {
	case strings.HasPrefix(m.Body, "@"): // else curl reads a file
		words = append(words, "--data-raw", quote(m.Body))
	case m.Body != "":
		words = append(words, "--data-binary", quote(m.Body))
	}
	return strings.Join(append(words, quote(m.URL)), " ")
}

// repeatable says why e's request cannot be sent again; nil: it can.
func (e Exchange) repeatable() error {
	switch m := e.Request; {
	case m.Method == "" || m.URL == "":
		return errors.New("the report does not hold the request")
	case m.Truncated > 0:
		return fmt.Errorf("the report holds the request without the last %d bytes of its body", m.Truncated)
	case m.Encoding != "":
		return errors.New("the body of the request is no text")
	}
	return nil
}

// NewRequest builds e's request to send it again, with getenv (os.Getenv or a stand-in) for the variables of its
// credentials. The error says which variable is not set, or what of the request is missing.
func (e Exchange) NewRequest(ctx context.Context, getenv func(string) string) (*http.Request, error) {
	if err := e.repeatable(); err != nil {
		return nil, err
	}
	var body io.Reader
	if e.Request.Body != "" {
		body = strings.NewReader(e.Request.Body)
	}
	req, err := http.NewRequestWithContext(ctx, e.Request.Method, e.Request.URL, body)
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", err)
	}
	for name, value := range e.Request.Header {
		c, secret := e.credential(name)
		if !secret {
			req.Header.Set(name, value)
			continue
		}
		value := getenv(e.Variable(c))
		switch {
		case value == "":
			return nil, fmt.Errorf("the environment variable %s is not set: the request needs it", e.Variable(c))
		case c.User != "":
			req.SetBasicAuth(c.User, value)
		default:
			req.Header.Set(name, strings.TrimSpace(c.Scheme+" "+value))
		}
	}
	return req, nil
}

// withVariable makes text and the value of a variable behind it one word of a POSIX shell.
func withVariable(text, variable string) string {
	if plain := strings.ReplaceAll(text, " ", ""); quote(plain) == plain {
		return `"` + text + `$` + variable + `"`
	}
	return quote(text) + `"$` + variable + `"`
}

// quote makes s one word of a POSIX shell.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// special holds for what a shell may take for more than a letter of a word.
func special(r rune) bool {
	return !strings.ContainsRune("_-./:,=@", r) && shellName(string(r)) != string(r)
}
