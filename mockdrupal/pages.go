package mockdrupal

import (
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// refusal is a request that Drupal ends with an exception page.
type refusal struct {
	status  int
	title   string // of the HTML page, before the site's name
	message string // of the JSON and XML forms
}

// refuse responds in the format that ?_format asks for: a page, or {"message": …} in a format that the serialization
// module knows, or else as to an uncaught exception.
func (x *request) refuse(r refusal) *Response {
	switch format, _ := x.format(); format {
	case formatHTML:
		return exchange.Page(r.status, r.title+" | "+x.state.site.Title)
	case "json":
		return exchange.JSON(r.status, php.Map(php.Pair{Name: "message", Value: r.message}))
	case "xml":
		text := r.message
		if strings.ContainsAny(text, "<>&") {
			text = "<![CDATA[" + text + "]]>"
		}
		return exchange.NewResponse(r.status, exchange.XMLType, []byte("<?xml version=\"1.0\"?>\n<response><message>"+text+"</message></response>\n"))
	}
	return x.plain(r.status, unexpectedError)
}

func (x *request) notFound(message string) *Response {
	return x.refuse(refusal{http.StatusNotFound, "Page not found", message})
}

func (x *request) denied(message string) *Response {
	return x.refuse(refusal{http.StatusForbidden, "Access denied", message})
}

// permissionRequired is Drupal's message about a missing permission.
func permissionRequired(permission string) string {
	return "The '" + permission + "' permission is required."
}

// unexpectedError is all that Drupal shows of an uncaught exception.
const unexpectedError = "The website encountered an unexpected error. Try again later."

func (x *request) unexpected() *Response {
	return x.plain(http.StatusInternalServerError, unexpectedError)
}

// plain is Drupal's last resort for an exception: its message, as a page or as text.
func (x *request) plain(status int, message string) *Response {
	kind := exchange.TextType
	if format, _ := x.format(); status == http.StatusInternalServerError && format == formatHTML {
		kind = exchange.HTMLType
	}
	return exchange.NewResponse(status, kind, []byte(message))
}

// crashed is an exception before Drupal's kernel was up.
func crashed() *Response {
	return &Response{Status: http.StatusInternalServerError, Header: http.Header{"Content-Type": {exchange.HTMLType}, "Cache-Control": {"no-cache, private"}},
		Body: []byte(unexpectedError + "<br />")}
}
