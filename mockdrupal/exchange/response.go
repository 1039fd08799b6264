package exchange

import (
	"html"
	"maps"
	"net/http"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Content types as Drupal writes them.
const (
	JSONType = "application/json"
	HTMLType = "text/html; charset=UTF-8"
	XMLType  = "text/xml; charset=UTF-8"
	TextType = "text/plain; charset=UTF-8"
)

// Response is a response before it is sent, so that a fault can still change it.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// With sets a header and returns the response.
func (r *Response) With(name, value string) *Response {
	r.Header.Set(name, value)
	return r
}

// drupalHeaders are those that Drupal puts on every response. Their values are shared: a header is replaced, never changed.
var drupalHeaders = http.Header{
	"Cache-Control":          {"must-revalidate, no-cache, private"},
	"Content-Language":       {"en"},
	"X-Content-Type-Options": {"nosniff"},
	"X-Frame-Options":        {"SAMEORIGIN"},
	"Expires":                {"Sun, 19 Nov 1978 05:00:00 GMT"},
	"X-Generator":            {"Drupal 10 (https://www.drupal.org)"},
}

// NewResponse returns a response with Drupal's headers; contentType "" sets none.
func NewResponse(status int, contentType string, body []byte) *Response {
	r := &Response{Status: status, Header: maps.Clone(drupalHeaders), Body: body}
	if contentType != "" {
		r.Header["Content-Type"] = []string{contentType}
	}
	return r
}

// JSON returns a response with a PHP value. A value that json_encode refuses gives an empty body, as in Drupal.
func JSON(status int, v php.Value) *Response {
	body, err := php.Encode(v)
	if err != nil {
		body = nil // PHP's json_encode gave FALSE
	}
	return NewResponse(status, JSONType, body)
}

// Page returns an HTML page with a title and nothing else.
func Page(status int, title string) *Response {
	return NewResponse(status, HTMLType, []byte("<!DOCTYPE html>\n<html lang=\"en\" dir=\"ltr\">\n<head>\n<meta charset=\"utf-8\" />\n<title>"+
		html.EscapeString(title)+"</title>\n</head>\n<body>\n<main><h1>"+html.EscapeString(title)+"</h1></main>\n</body>\n</html>\n"))
}
