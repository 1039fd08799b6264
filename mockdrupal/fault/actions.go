package fault

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
)

func delayBody(v *action) {
	half := len(v.Response.Body) / 2
	v.Done = true
	v.SendHead()
	_ = v.SendBody(v.Response.Body[:half])
	v.Flush()
	if v.pause(v.fault.Delay) {
		_ = v.SendBody(v.Response.Body[half:])
	}
}

func drip(v *action) {
	v.Done = true
	v.SendHead()
	v.Flush()
	for i := range v.Response.Body {
		if !v.pause(v.fault.Delay) {
			return
		}
		_ = v.SendBody(v.Response.Body[i : i+1])
		v.Flush()
	}
}

func hang(v *action) {
	v.Done = true
	if v.pause(0) {
		v.Drop()
	}
}

func hangBody(v *action) {
	v.Done = true
	v.Response.Status = cmp.Or(v.fault.Status, v.Response.Status)
	v.SendHead()
	_ = v.SendBody(v.Response.Body[:len(v.Response.Body)/2])
	v.Flush()
	if v.pause(0) {
		v.Drop()
	}
}

func cut(v *action) {
	whole := len(v.Response.Body)
	v.Response.Body = v.Response.Body[:whole/2]
	v.SendRaw(whole)
}

// status sends a body of choice under a status of choice; with Run and no Body it is the site's own response under that
// status.
func status(v *action) {
	code := cmp.Or(v.fault.Status, http.StatusInternalServerError)
	if v.Response != nil && v.fault.Body == "" {
		v.Response.Status = code
	} else {
		kind := cmp.Or(v.fault.ContentType, exchange.JSONType)
		v.Response = exchange.NewResponse(code, kind, []byte(v.fault.Body))
	}
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests { // as overloaded servers send them
		v.Response.Header.Set("Retry-After", "1")
	}
}

func htmlPage(v *action) {
	code := cmp.Or(v.fault.Status, http.StatusOK)
	v.Response = exchange.Page(code, "Error | "+v.Title)
	if v.fault.Body != "" {
		v.Response.Body = []byte(v.fault.Body)
	}
}

func empty(v *action) {
	code := cmp.Or(v.fault.Status, http.StatusOK)
	v.Response = exchange.NewResponse(code, exchange.JSONType, nil)
}

func contentType(v *action) {
	v.Response.Header.Set("Content-Type", cmp.Or(v.fault.ContentType, exchange.TextType))
}

func brokenGzip(v *action) {
	v.Response.Header.Set("Content-Encoding", "gzip")
	v.Response.Body = append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, "this is no deflate stream"...)
}

// elsewhere is a host that is not the site's; .invalid never resolves.
const elsewhere = "http://elsewhere.invalid/"

func redirect(v *action) {
	to := cmp.Or(v.fault.Location, elsewhere)
	code := cmp.Or(v.fault.Status, http.StatusFound)
	v.Response = exchange.Page(code, "Redirecting to "+to)
	v.Response.Header.Set("Location", to)
}

// rewrite changes the body of the site's own response.
func rewrite(change func([]byte) []byte) func(*action) {
	return func(v *action) {
		if v.Response != nil {
			v.Response.Body = change(slices.Clone(v.Response.Body))
		}
	}
}

func setCookie(v *action) {
	if v.Response == nil {
		return
	}
	seq := strconv.FormatInt(v.Entry().Seq, 10)
	v.Response.Header.Add("Set-Cookie", strings.ReplaceAll(v.fault.Cookie, "{seq}", seq))
}
