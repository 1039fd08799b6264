package mockdrupal

import (
	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// Protocol is a JSON-RPC interface of an extension: the controller of the jsonrpc module before methods of another module. Reading,
// parameters, outputs and errors are as on /jsonrpc.
type Protocol struct {
	Methods []fixtures.Method // a method that is not in Run does what its behaviour says
	Run     map[string]func(*Visit, *php.Array) (php.Value, *Exception)
	// Means says which route a call would have without the extension, and which call it would be there, so that faults and the
	// journal find it under the same names. A route of "" is the extension's own.
	Means func(*fixtures.Site, journal.Call) (route string, means journal.Call)

	offer *offer
}

// Exception is what a method of a protocol throws: a JsonRpcException, which loses the id of the request, or another.
type Exception struct {
	Message string
	JSONRPC bool
}

// begin prepares the protocol's methods once.
func (p *Protocol) begin() {
	if p != nil {
		p.offer = newOffer(&fixtures.Site{Methods: p.Methods}, nil)
	}
}

// methodNamed is the method that a call means, of the site or of the protocol that the request speaks.
func (x *request) methodNamed(name string) (*method, bool) {
	methods := x.state.methods
	if x.protocol != nil {
		methods = x.protocol.offer.methods
	}
	m, ok := methods[name]
	return m, ok
}

// read reads the body of a request that speaks a protocol, before faults look at it, and names it as what it means.
func (x *request) read(p *Protocol) {
	x.protocol = p
	if p == nil || x.ReadBody() != nil {
		return
	}
	calls := x.Calls()
	for i := range calls {
		var name string
		if name, calls[i] = p.Means(x.state.site, calls[i]); name != "" && (i == 0 || name == route.JSONRPC) {
			x.Route = name
		}
	}
}

// thrown is the response to a call whose method throws.
func (c *rpcCall) thrown(e *Exception) rpcResponse {
	if e.JSONRPC {
		return failure(nil, internalError(e.Message))
	}
	return failure(c.id, internalError(e.Message))
}

// JSONRPC hands the request to the controller of the jsonrpc module, past its route's permission: before the site's methods, or
// those of the route's protocol.
func (v *Visit) JSONRPC() *Response { return v.x.rpc() }

// Call calls a method of the site as /jsonrpc does, with checked arguments, from a method of a protocol. When it fails, the message is
// that of the error and detail its data, if that is text.
func (v *Visit) Call(id string, arguments *php.Array) (result php.Value, message, detail string, ok bool) {
	x := *v.x
	x.protocol = nil
	raw := journal.Call{Method: id}
	if v.call.journal < len(x.Calls()) {
		raw = x.Calls()[v.call.journal]
	}
	c, r := x.readCall(php.Map(php.Pair{Name: "method", Value: id}, php.Pair{Name: "id", Value: int64(1)}, php.Pair{Name: "params", Value: arguments}),
		raw, v.call.journal)
	if r == nil {
		done := x.execute(c)
		r = &done
		v.x.Done = x.Done
	}
	if r.err != nil {
		detail, _ = r.err.data.(string)
		return nil, r.err.message, detail, false
	}
	return r.result, "", "", true
}
