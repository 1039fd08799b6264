package mockdrupal

import (
	"html"
	"maps"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Content types as Drupal writes them.
const (
	typeJSON = "application/json"
	typeHTML = "text/html; charset=UTF-8"
	typeXML  = "text/xml; charset=UTF-8"
	typeText = "text/plain; charset=UTF-8"
)

// Answer is a response before it goes out, so that a fault can still bend it.
type Answer struct {
	status int
	header http.Header
	body   []byte
}

// With sets a header and returns the answer.
func (a *Answer) With(name, value string) *Answer {
	a.header.Set(name, value)
	return a
}

// drupalHeaders are those that Drupal puts on every answer. Their values are shared: a header is replaced, never changed.
var drupalHeaders = http.Header{
	"Cache-Control":          {"must-revalidate, no-cache, private"},
	"Content-Language":       {"en"},
	"X-Content-Type-Options": {"nosniff"},
	"X-Frame-Options":        {"SAMEORIGIN"},
	"Expires":                {"Sun, 19 Nov 1978 05:00:00 GMT"},
	"X-Generator":            {"Drupal 10 (https://www.drupal.org)"},
}

func newAnswer(status int, contentType string, body []byte) *Answer {
	a := &Answer{status: status, header: maps.Clone(drupalHeaders), body: body}
	if contentType != "" {
		a.header["Content-Type"] = []string{contentType}
	}
	return a
}

func jsonAnswer(status int, v php.Value) *Answer {
	body, err := php.Encode(v)
	if err != nil {
		body = nil // PHP's json_encode gave FALSE
	}
	return newAnswer(status, typeJSON, body)
}

func page(status int, title string) *Answer {
	return newAnswer(status, typeHTML, []byte("<!DOCTYPE html>\n<html lang=\"en\" dir=\"ltr\">\n<head>\n<meta charset=\"utf-8\" />\n<title>"+
		html.EscapeString(title)+"</title>\n</head>\n<body>\n<main><h1>"+html.EscapeString(title)+"</h1></main>\n</body>\n</html>\n"))
}

// refusal is a request that Drupal ends with an exception page.
type refusal struct {
	status  int
	title   string // of the HTML page, before the site's name
	message string // of the JSON and XML forms
}

// refuse answers in the format that ?_format asks for: a page, or {"message": …} in a format that the serialization
// module knows, or else as to an exception that nobody caught.
func (x *exchange) refuse(r refusal) *Answer {
	switch format, _ := x.format(); format {
	case formatHTML:
		return page(r.status, r.title+" | "+x.state.site.Title)
	case "json":
		return jsonAnswer(r.status, php.Map(php.Pair{Name: "message", Value: r.message}))
	case "xml":
		text := r.message
		if strings.ContainsAny(text, "<>&") {
			text = "<![CDATA[" + text + "]]>"
		}
		return newAnswer(r.status, typeXML, []byte("<?xml version=\"1.0\"?>\n<response><message>"+text+"</message></response>\n"))
	}
	return x.plain(r.status, unexpectedError)
}

func (x *exchange) notFound(message string) *Answer {
	return x.refuse(refusal{http.StatusNotFound, "Page not found", message})
}

func (x *exchange) denied(message string) *Answer {
	return x.refuse(refusal{http.StatusForbidden, "Access denied", message})
}

// permissionRequired is what Drupal says of a missing permission.
func permissionRequired(permission string) string {
	return "The '" + permission + "' permission is required."
}

// unexpectedError is all that a visitor is told of an exception that nobody caught.
const unexpectedError = "The website encountered an unexpected error. Try again later."

func (x *exchange) unexpected() *Answer {
	return x.plain(http.StatusInternalServerError, unexpectedError)
}

// plain is Drupal's last resort for an exception: its message, as a page or as text.
func (x *exchange) plain(status int, message string) *Answer {
	kind := typeText
	if format, _ := x.format(); status == http.StatusInternalServerError && format == formatHTML {
		kind = typeHTML
	}
	return newAnswer(status, kind, []byte(message))
}

// crashed is an exception before Drupal's kernel was up.
func crashed() *Answer {
	return &Answer{status: http.StatusInternalServerError, header: http.Header{"Content-Type": {typeHTML}, "Cache-Control": {"no-cache, private"}},
		body: []byte(unexpectedError + "<br />")}
}
