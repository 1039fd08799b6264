package reports

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/authkind"
	"github.com/bridgecheck/bridgecheck/internal/curl"
)

// Variable is the environment variable that stands for the secret of a credential of e: the identity, and PASSWORD for
// HTTP Basic, TOKEN for another Authorization, the header's name for any other header.
func (e Exchange) Variable(c Credential) string {
	kind := c.Header
	switch {
	case c.User != "":
		kind = authkind.Of(authkind.Basic).Secret
	case http.CanonicalHeaderKey(c.Header) == "Authorization":
		kind = authkind.Of(authkind.Bearer).Secret
	}
	return curl.Name(e.Identity + "_" + kind)
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
// expanded in it; all else is quoted data. A body in a file is read from there, so that the line works in the directory
// of the report. It is "" where the report does not hold the whole request.
func (e Exchange) Curl() string {
	body, err := e.repeatable()
	if err != nil {
		return ""
	}
	c := curl.Command{Method: e.Request.Method, Body: body, BodyFile: e.Request.File, URL: e.Request.URL}
	for name, text := range e.Request.Header {
		switch credential, secret := e.credential(name); {
		case !secret:
			c.Header = append(c.Header, curl.Field{Name: name, Value: curl.Value{Text: text}})
		case credential.User != "":
			c.User = curl.Value{Text: credential.User + ":", Variable: e.Variable(credential)}
		case credential.Scheme != "":
			c.Header = append(c.Header, curl.Field{Name: name, Value: curl.Value{Text: credential.Scheme + " ", Variable: e.Variable(credential)}})
		default:
			c.Header = append(c.Header, curl.Field{Name: name, Value: curl.Value{Variable: e.Variable(credential)}})
		}
	}
	return c.String()
}

// repeatable is the body of e's request; the error says why the request cannot be sent again.
func (e Exchange) repeatable() (body string, err error) {
	switch m := e.Request; {
	case m.Method == "" || m.URL == "":
		return "", errors.New("the report does not hold the request")
	case m.File != "" && m.Whole == nil:
		return "", fmt.Errorf("%s, which holds the body of the request, is not beside the report", m.File)
	case m.File != "":
		return string(m.Whole), nil
	case m.Truncated > 0:
		return "", fmt.Errorf("the report holds the request without the last %d bytes of its body", m.Truncated)
	case m.Encoding == "base64":
		decoded, err := base64.StdEncoding.DecodeString(m.Body)
		if err != nil {
			return "", errors.New("the body of the request is not the base64 that the report calls it")
		}
		return string(decoded), nil
	case m.Encoding != "":
		return "", fmt.Errorf("the body of the request has the unknown encoding %q", m.Encoding)
	default:
		return m.Body, nil
	}
}

// NewRequest builds e's request to send it again, with getenv (os.Getenv or a stand-in) for the variables of its
// credentials. The error says which variable is not set, or what of the request is missing.
func (e Exchange) NewRequest(ctx context.Context, getenv func(string) string) (*http.Request, error) {
	text, err := e.repeatable()
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if text != "" {
		body = strings.NewReader(text)
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
