// Package fault is the bridge's one list of error codes and the error value that carries them from where something
// went wrong to the code that responds to the caller. It knows no transport beyond each code's HTTP status. The caller sees
// every message in a fault; what must stay inside goes into Cause, which is logged and never sent.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Code is a word of the documented set, the same for the same cause on every endpoint.
type Code string

// The codes. The first two are the module plans' own; the rest completes them.
const (
	ToolNotFound        Code = "tool_not_found"
	ExecutionError      Code = "execution_error"
	NotFound            Code = "not_found"
	InternalError       Code = "internal_error"
	MissingParameter    Code = "missing_parameter"
	InvalidJSON         Code = "invalid_json"
	InvalidParams       Code = "invalid_params"
	InvalidCursor       Code = "invalid_cursor"
	InvalidRequest      Code = "invalid_request"
	AuthRequired        Code = "authentication_required"
	AccessDenied        Code = "access_denied"
	MethodNotAllowed    Code = "method_not_allowed"
	RequestTooLarge     Code = "request_too_large"
	UnsupportedMedia    Code = "unsupported_media_type"
	RateLimited         Code = "rate_limited"
	UpstreamError       Code = "upstream_error"
	UpstreamUnavailable Code = "upstream_unavailable"
	Overloaded          Code = "overloaded"
	UpstreamTimeout     Code = "upstream_timeout"
)

// Statuses gives each code its HTTP status.
var Statuses = map[Code]int{
	ToolNotFound: 404, NotFound: 404,
	ExecutionError: 500, InternalError: 500,
	MissingParameter: 400, InvalidJSON: 400, InvalidParams: 400, InvalidCursor: 400, InvalidRequest: 400,
	AuthRequired: 401, AccessDenied: 403, MethodNotAllowed: 405, RequestTooLarge: 413, UnsupportedMedia: 415,
	RateLimited: 429, UpstreamError: 502, UpstreamUnavailable: 503, Overloaded: 503, UpstreamTimeout: 504,
}

// Error is a failure as the caller receives it.
type Error struct {
	Code    Code
	Message string          // one sentence for the caller
	Data    json.RawMessage // details, a JSON object; nil: none

	Challenge  []string      // WWW-Authenticate values that go with AuthRequired, and with an AccessDenied that other credentials would change
	RetryAfter time.Duration // when to retry; 0: unknown
	Cause      error         // for the log only
}

// New makes an error with a message for the caller.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Because attaches the cause that only the log may see.
func (e *Error) Because(cause error) *Error {
	e.Cause = cause
	return e
}

// Error is the text for the log: code, message and cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s (%v)", e.Code, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// WaitSeconds is RetryAfter as the header has it: whole seconds, rounded up.
func (e *Error) WaitSeconds() string {
	return strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Status is the HTTP status of the error's code.
func (e *Error) Status() int { return Statuses[e.Code] }

// From returns the fault within err; any other error becomes an InternalError that shows the caller nothing.
func From(err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	return New(InternalError, "The bridge failed to respond; its log says why.").Because(err)
}

// Is reports whether err is a fault with one of these codes.
func Is(err error, codes ...Code) bool {
	f, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(codes, f.Code)
}

// Brief bounds a text of others that a message or a line of the log quotes, to 256 bytes.
func Brief(text string) string { return Clip(text, 256) }

// Clip bounds a text of others that goes into a message or a log, in bytes, at the end of a character.
func Clip(text string, longest int) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}
