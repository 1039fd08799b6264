package httpapi

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/body"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fair"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// invoke serves POST /mcp/tools/invoke {"name": N, "arguments": {…}}.
func (a *API) invoke(w http.ResponseWriter, r *http.Request) error {
	who, v, err := a.view(r)
	if err != nil {
		return err
	}
	if err := a.sameSite(r); err != nil {
		return err
	}
	ctx, lease := a.Memory.Lease(r.Context(), who.Holder())
	defer lease.Release()
	sent, err := a.body(w, r, lease)
	if err != nil {
		return err
	}
	name, arguments, err := a.call(ctx, who, sent)
	if err != nil {
		return err
	}
	result, err := a.Invoker.Run(ctx, who, v, name, arguments)
	if err != nil {
		return err
	}
	a.writeJSON(w, http.StatusOK, resultOpens, result, resultCloses)
	return nil
}

// What a response puts around the site's own bytes.
var resultOpens, resultCloses = []byte(`{"result":`), []byte(`}`)

// call takes a request's body apart when it is its turn.
func (a *API) call(ctx context.Context, who caller.Caller, body []byte) (name string, arguments []byte, err error) {
	done, err := a.Invoker.Turn(ctx, who, len(body))
	if err != nil {
		return "", nil, err
	}
	defer done()
	return call(body)
}

// call takes a request's body apart. PHP's [] is taken for empty arguments.
func call(body []byte) (name string, arguments []byte, err error) {
	doc, err := jsondoc.Split(body)
	switch {
	case err != nil:
		return "", nil, fault.New(fault.InvalidJSON, "The body is not valid JSON: %s.", err)
	case doc.Kind != jsondoc.Object:
		return "", nil, fault.New(fault.InvalidJSON, `The body is a JSON %s; it must be an object {"name": …, "arguments": {…}}.`, doc.Kind)
	}
	n, _ := doc.Get("name")
	if name, _ = n.Text(); name == "" {
		return "", nil, fault.New(fault.MissingParameter, "The member name is missing; it must be a tool's name, a string.")
	}
	args, ok := doc.Get("arguments")
	switch {
	case !ok:
		return "", nil, fault.New(fault.MissingParameter, "The member arguments is missing; it must be an object, {} for none.")
	case args.Kind == jsondoc.Object:
		return name, args.Raw, nil
	case args.Kind == jsondoc.Array && jsondoc.HoldsNothing(args.Raw):
		return name, []byte("{}"), nil
	}
	return "", nil, fault.New(fault.InvalidParams, "The member arguments is a JSON %s; it must be an object.", args.Kind)
}

// body reads the request's body, in bounded size, memory and time.
func (a *API) body(w http.ResponseWriter, r *http.Request, lease *fair.Lease) ([]byte, error) {
	read, err := body.Read(w, r, a.MaxBody, a.BodyTime, lease)
	var over *http.MaxBytesError
	switch {
	case err == nil:
		return read, nil
	case errors.As(err, &over):
		return nil, fault.New(fault.RequestTooLarge, "The body is longer than %d bytes.", a.MaxBody).Because(err)
	case errors.Is(err, fair.ErrNoMemory):
		e := fault.New(fault.Overloaded, "Too many large bodies; retry in 1 s.").Because(err)
		e.RetryAfter = time.Second
		return nil, e
	case errors.Is(err, body.ErrTooLate):
		return nil, fault.New(fault.InvalidRequest, "The body did not arrive within %s.", a.BodyTime).Because(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault.New(fault.InvalidJSON, "The body is shorter than announced.").Because(err)
	}
	return nil, fault.New(fault.InvalidRequest, "The body could not be read.").Because(err)
}

// sameSite keeps web pages from calling tools through a caller's browser, beside the policy of origins. A browser sends
// cookies and remembered passwords unasked, but application/json only after it has asked the bridge, which never agrees.
func (a *API) sameSite(r *http.Request) error {
	kind, isJSON := mediaType(r.Header)
	if !isJSON && (formTypes[kind] || a.Callers.BySession(r.Header)) {
		return fault.New(fault.UnsupportedMedia, "The body must be sent as application/json.")
	}
	return nil
}

// mediaType is what a request says that its body is, without parameters.
func mediaType(h http.Header) (kind string, isJSON bool) {
	kind = h.Get("Content-Type")
	if kind == "application/json" { // as nearly all say it
		return kind, true
	}
	kind, _, err := mime.ParseMediaType(kind)
	return kind, err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// formTypes are what any web page may send anywhere.
var formTypes = map[string]bool{"text/plain": true, "application/x-www-form-urlencoded": true, "multipart/form-data": true}
