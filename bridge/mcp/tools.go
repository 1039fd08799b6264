package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/bridgecheck/bridgecheck/bridge/catalog"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/bridge/jsondoc"
)

// listTools is tools/list: the pages of the plain front, in the same order, by the same cursors.
func (s *Server) listTools(ctx context.Context, r request) ([]byte, *protocolError) {
	v, refused := s.view(ctx, r.who)
	if refused != nil {
		return nil, refused
	}
	if !v.MayDiscover {
		return nil, protocolErrorOf(fault.New(fault.AccessDenied, "This caller may not discover tools: the permission 'access mcp tool discovery' is required."))
	}
	cursor, given := r.params.Get("cursor")
	text, isText := cursor.Text()
	if given && !isText {
		return nil, protocolErrorf(codeInvalidParams, "The cursor must be a string.")
	}
	at, err := catalog.ParseCursor(text)
	if err != nil {
		return nil, protocolErrorOf(err)
	}
	if r.session != nil {
		r.session.listed.Store(&v.Catalog().Version)
	}
	page, err := v.Page(ctx, at)
	if err != nil {
		return nil, protocolErrorOf(err)
	}
	return s.page(page, r.revision), nil
}

// page is a ListToolsResult. A tool that a strict client could not read is left out: it would drop all the others.
func (s *Server) page(p *catalog.Page, revision Revision) []byte {
	b := make([]byte, 0, len(p.Body)+1024)
	b = append(b, `{"tools":[`...)
	first := true
	for _, t := range p.Tools {
		f := s.forms.of(t)
		if f.listed == nil {
			s.o.Logger.Warn("tool is not shown to MCP clients: its schema cannot be read", "tool", t.Name)
			continue
		}
		if !first {
			b = append(b, ',')
		}
		b, first = append(b, f.listed...), false
	}
	b = append(b, ']')
	if p.Next > 0 {
		b = jsondoc.AppendString(append(b, `,"nextCursor":`...), p.Next.String())
	}
	if revision == July2026 {
		b = s.cacheable(append(b, ','))
	}
	return append(b, '}')
}

// callTool is tools/call.
func (s *Server) callTool(ctx context.Context, r request) ([]byte, *protocolError) {
	name, ok := r.params.Get("name")
	if !ok || name.Kind != jsondoc.String {
		return nil, protocolErrorf(codeInvalidParams, "The parameter name is missing; it must be a tool's name, a string.")
	}
	arguments := []byte("{}")
	switch given, there := r.params.Get("arguments"); {
	case !there, given.Kind == jsondoc.Array && jsondoc.HoldsNothing(given.Raw): // PHP's [] is an empty object
	case given.Kind != jsondoc.Object:
		return nil, protocolErrorf(codeInvalidParams, "The parameter arguments is a JSON %s; it must be an object.", given.Kind)
	default:
		arguments = given.Raw
	}
	v, refused := s.view(ctx, r.who)
	if refused != nil {
		return nil, refused
	}
	called, _ := name.Text()
	tool, err := v.Tool(ctx, called)
	if err != nil {
		return r.fault(err)
	}
	if err := s.o.Invoker.Permit(r.who, tool); err != nil {
		return r.fault(err) // ahead of the progress, with which the status would be out
	}
	f := s.forms.of(tool)
	if r.header != nil {
		if wrong := f.agreeOn(ctx, r.header, arguments); wrong != nil {
			return nil, wrong
		}
	}
	progress := r.progress()
	progress("The call is accepted.")
	progress("The site is asked.")
	result, err := s.o.Invoker.Run(ctx, r.who, v, called, arguments)
	if err != nil {
		return r.fault(err)
	}
	progress("The site has responded.")
	return s.finished(ctx, r, f, tool, oneLine(result))
}

// finished makes the result of a call that went well at the site.
func (s *Server) finished(ctx context.Context, r request, f *form, tool *catalog.Tool, raw json.RawMessage) ([]byte, *protocolError) {
	if output, err := tool.Output(); err != nil || output == nil {
		return f.result(raw, nil), nil
	}
	conforming, violations, err := s.o.Invoker.Conform(ctx, r.who, tool, raw)
	if err != nil {
		return r.fault(err)
	}
	if len(violations) > 0 {
		// A client would refuse such a result as a whole. The model may still make something of it.
		v := violations[0]
		return failed(fmt.Sprintf("The result of %s does not conform to its output schema: %s: expected %s, received %s.",
			tool.Name, cmp.Or(v.Parameter, "the whole"), v.Expected, v.Received), string(raw)), nil
	}
	return f.result(raw, oneLine(conforming)), nil
}

// asResult lists the faults that are results with isError: the tool is there, and a model can do something about it.
var asResult = map[fault.Code]bool{
	fault.InvalidParams: true, fault.ExecutionError: true, fault.RateLimited: true, fault.RequestTooLarge: true,
	fault.UpstreamError: true, fault.UpstreamUnavailable: true, fault.UpstreamTimeout: true, fault.Overloaded: true,
}

// fault words a call that failed.
func (r request) fault(err error) ([]byte, *protocolError) {
	f := fault.From(err)
	if r.failed != nil {
		r.failed(f)
	}
	switch {
	case f.Code == fault.AccessDenied && len(f.Challenge) > 0: // by what the token may
		return nil, protocolErrorOf(f)
	case f.Code == fault.AccessDenied: // by the site: like a tool that the caller never had
		return nil, protocolErrorf(codeInvalidParams, "%s", f.Message)
	case asResult[f.Code]:
		text := f.Message
		if f.RetryAfter > 0 {
			text += fmt.Sprintf(" Try again in %.0f s.", f.RetryAfter.Seconds()+0.5)
		}
		return failed(text), nil
	}
	return nil, protocolErrorOf(f)
}

// steps of a call whose progress a client can receive.
const steps = 3

// progress returns a function that reports to the client how far its call is, if the client asked for it.
func (r request) progress() func(what string) {
	token, asked := r.meta.Get("progressToken")
	if !asked || r.notify == nil || token.Kind != jsondoc.String && token.Kind != jsondoc.Number {
		return func(string) {}
	}
	done := 0
	return func(what string) {
		done++
		b := append([]byte(`{"progressToken":`), token.Raw...)
		b = fmt.Appendf(b, `,"progress":%d,"total":%d,"message":`, done, steps)
		r.notify(notification("notifications/progress", append(jsondoc.AppendString(b, what), '}')))
	}
}
