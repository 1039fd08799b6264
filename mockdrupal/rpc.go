package mockdrupal

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
	"github.com/bridgecheck/bridgecheck/mockdrupal/phpschema"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
	"github.com/bridgecheck/bridgecheck/mockdrupal/route"
)

// version is the one that the module speaks.
const version = "2.0"

// rpcCall is one JSON-RPC call, read as the jsonrpc module's RpcRequestFactory reads it.
type rpcCall struct {
	method    *method
	id        php.Value // nil for a notification
	arguments *php.Array
	raw       fixtures.Raw // params as sent
	journal   int          // index into the entry's Calls
	unchecked bool         // no parameter factory has seen the arguments
}

// rpcError is a JSON-RPC error object.
type rpcError struct {
	code    int64
	message string
	data    php.Value
}

// The jsonrpc module's error texts (Drupal\jsonrpc\JsonRpcObject\Error).
func invalidRequest(detail string) *rpcError { return &rpcError{-32600, "Invalid Request", detail} }
func invalidParams(detail string) *rpcError  { return &rpcError{-32602, "Invalid Params", detail} }

func methodNotFound(id string) *rpcError {
	return &rpcError{-32601, "Method Not Found", "The method '" + id + "' does not exist/is not available."}
}

// internalError is what the module makes of any other exception; an empty text is replaced by the code's meaning.
func internalError(detail string) *rpcError {
	if !php.Truthy(detail) {
		detail = "Internal JSON-RPC error."
	}
	return &rpcError{-32603, "Internal Error", detail}
}

// uncaught stands for a PHP error that the module does not catch.
var uncaught = &rpcError{}

// rpcResponse is one response object.
type rpcResponse struct {
	id      php.Value
	result  php.Value
	err     *rpcError
	headers map[string]string
	method  *method // whose result it is; nil for a failure
}

func (r rpcResponse) value() *php.Array {
	members := []php.Pair{{Name: "jsonrpc", Value: version}, {Name: "id", Value: r.id}}
	if r.err == nil {
		return php.Map(append(members, php.Pair{Name: "result", Value: r.result})...)
	}
	return php.Map(append(members, php.Pair{Name: "error", Value: php.Map(
		php.Pair{Name: "code", Value: r.err.code},
		php.Pair{Name: "message", Value: r.err.message},
		php.Pair{Name: "data", Value: r.err.data},
	)})...)
}

// failure is the response to a call that failed: an id that is false to PHP is lost.
func failure(id php.Value, e *rpcError) rpcResponse {
	if !php.Truthy(id) {
		id = nil
	}
	return rpcResponse{id: id, err: e}
}

// requestSchema is the jsonrpc module's request schema: one request or a list of them.
var requestSchema = func() php.Value {
	const request = `{"type":"object","required":["jsonrpc","method"],"properties":{"jsonrpc":{"type":"string","enum":["2.0"]},` +
		`"method":{"type":"string"},"id":{"type":["number","string"]},"params":{"type":["array","object"]}}}`
	v, err := php.Decode([]byte(`{"oneOf":[` + request + `,{"type":"array","items":` + request + `}]}`))
	if err != nil {
		panic(err)
	}
	return v
}()

// violations is what breaks the request schema. The usual single request is recognised without the validator.
func violations(doc php.Value) []phpschema.Error {
	if request, ok := doc.(*php.Array); ok && request.Member("jsonrpc") == version {
		_, hasMethod := request.Member("method").(string)
		_, hasID := request.Get(php.KeyOf("id"))
		_, hasParams := request.Get(php.KeyOf("params"))
		_, usualID := request.Member("id").(int64)
		_, usualParams := request.Member("params").(*php.Array)
		if hasMethod && (usualID || !hasID) && (usualParams || !hasParams) {
			return nil
		}
	}
	errs, _ := phpschema.Validate(doc, requestSchema) // the schema throws nothing
	return errs
}

// responseSchema is the jsonrpc module's schema of a single response, with the output of the method whose result it is.
func responseSchema(output php.Value) *php.Array {
	one := func(names ...string) *php.Array {
		types := php.List()
		for _, name := range names {
			types.Append(name)
		}
		return types
	}
	return php.Map(
		php.Pair{Name: "type", Value: "object"},
		php.Pair{Name: "required", Value: one("jsonrpc")},
		php.Pair{Name: "properties", Value: php.Map(
			php.Pair{Name: "jsonrpc", Value: php.Map(php.Pair{Name: "type", Value: "string"}, php.Pair{Name: "enum", Value: one(version)})},
			php.Pair{Name: "result", Value: output},
			php.Pair{Name: "id", Value: php.Map(php.Pair{Name: "type", Value: one("number", "string", "null")})},
		)},
	)
}

// outputProblem is what the module's response factory finds wrong with the result of a single request; nil when it conforms. It
// does not look at those of a batch.
func (x *request) outputProblem(r rpcResponse) *Response {
	if r.method == nil || r.method.output() == nil || r.err != nil || x.d.quirks.Has(quirk.LenientOutput) {
		return nil
	}
	if b := r.method.Behaviour; b.Kind == fixtures.Value && b.Class != "" {
		r.result = php.Map(php.Pair{Name: "class", Value: b.Class}) // an object, whatever JSON has of it
	}
	doc, err := decoded(r.value())
	if err != nil {
		return nil // json_encode fails, and the response is empty
	}
	errs, thrown := phpschema.Validate(doc, responseSchema(r.method.output()))
	switch {
	case thrown != nil && thrown.Class != "" && thrown.Class != "TypeError":
		return x.unexpected()
	case thrown != nil:
		return exchange.JSON(http.StatusInternalServerError, failure(nil, internalError(thrown.Message)).value())
	case errs != nil:
		return exchange.JSON(http.StatusInternalServerError, failure(nil,
			internalError(`Adaptor Drupal\jsonrpc\Shaper\RpcResponseFactory returned invalid output data: []`)).value())
	}
	return nil
}

// decoded is a value with the documents in it as PHP has them.
func decoded(v php.Value) (php.Value, error) {
	text, err := php.Encode(v)
	if err != nil {
		return nil, err
	}
	return php.Decode(text)
}

// jsonrpc is the module's HttpController: read the calls, run them, combine the responses.
func (x *request) jsonrpc(map[string]string) *Response {
	if a := x.guard(x.d.jsonrpcSchemes(x.state.site), fixtures.UseJSONRPC); a != nil {
		return a
	}
	return x.d.cache.keep(x, x.rpc)
}

func (x *request) rpc() *Response {
	if problem := x.queryProblem(); problem != nil {
		return x.failed(failure(nil, problem))
	}
	calls, batch, failed := x.readCalls()
	if failed != nil {
		return x.failed(*failed)
	}
	if x.Verb == http.MethodOptions {
		if len(calls) == 0 {
			return x.unexpected() // the module combines the headers of no methods
		}
		return preflight(calls)
	}
	var responses []rpcResponse
	for _, c := range calls {
		r := x.run(c)
		if x.Done {
			return nil
		}
		if r != nil {
			responses = append(responses, *r)
		}
	}
	if len(responses) == 0 {
		return exchange.NewResponse(http.StatusNoContent, "", nil)
	}
	return x.respond(responses, batch)
}

// failed responds to a request that could not be read: 400 with one response object, whatever the request.
func (x *request) failed(r rpcResponse) *Response {
	if r.err == uncaught {
		return x.unexpected()
	}
	return exchange.JSON(http.StatusBadRequest, r.value())
}

func (x *request) respond(responses []rpcResponse, batch bool) *Response {
	if !batch {
		if a := x.outputProblem(responses[0]); a != nil {
			return a
		}
	}
	doc := responses[0].value()
	if batch {
		doc = &php.Array{}
		for _, r := range responses {
			doc.Append(r.value())
		}
	}
	a := exchange.JSON(http.StatusOK, doc)
	addHeaders(a, responses)
	return a
}

// lostHeaders are those that Drupal sets or removes after the module's.
var lostHeaders = []string{"cache-control", "expires", "etag", "last-modified", "vary"}

// addHeaders adds the first response's headers, as far as all the others have one of the same name. Symfony's header bag
// lower-cases names.
func addHeaders(a *Response, responses []rpcResponse) {
	for name, value := range responses[0].headers {
		lower := strings.ToLower(name)
		missing := slices.ContainsFunc(responses, func(r rpcResponse) bool { return !hasHeader(r, lower) })
		if !missing && !slices.Contains(lostHeaders, lower) {
			if lower == "content-type" { // there is one, of whatever spelling
				lower = "Content-Type"
			}
			a.Header[lower] = []string{value}
		}
	}
}

func hasHeader(r rpcResponse, lower string) bool {
	for name := range r.headers {
		if strings.ToLower(name) == lower {
			return true
		}
	}
	return false
}

// isPreflight reports whether the request is a browser's question whether a page may send another one.
func (x *request) isPreflight() bool {
	return x.Verb == http.MethodOptions && x.Request.Header.Get("Access-Control-Request-Method") != ""
}

// preflight responds to OPTIONS: the calls are read and not run.
func preflight(calls []*rpcCall) *Response {
	a := exchange.NewResponse(http.StatusNoContent, "", nil)
	var responses []rpcResponse
	for _, c := range calls {
		responses = append(responses, rpcResponse{headers: c.method.ResponseHeaders})
	}
	if len(responses) > 0 {
		addHeaders(a, responses)
	}
	a.Header.Set("Allow", "OPTIONS, GET, HEAD, POST")
	return a
}

// queryProblem is what Symfony says when ?query[]= is no scalar.
func (x *request) queryProblem() *rpcError {
	if _, isList, _ := x.Query("query"); isList && (x.Verb == http.MethodGet || x.Verb == http.MethodOptions) {
		return internalError(`Input value "query" contains a non-scalar value.`)
	}
	return nil
}

// readCalls reads all calls of the request before any of them runs: the first that cannot be read fails the whole
// request.
func (x *request) readCalls() (calls []*rpcCall, batch bool, failed *rpcResponse) {
	doc, err := php.Decode(x.Message())
	if err != nil {
		doc = nil
	}
	if errs := violations(doc); errs != nil {
		r := failure(nil, internalError(adaptor(`Drupal\jsonrpc\Shaper\RpcRequestFactory`, errs)))
		return nil, false, &r
	}
	request := doc.(*php.Array) // the schema takes nothing else
	requests := []php.Value{request}
	if batch = request.Member("jsonrpc") == nil; batch {
		requests = nil
		for i := range request.Len() {
			_, item := request.At(i)
			requests = append(requests, item)
		}
	}
	if batch && slices.ContainsFunc(requests, isOtherVersion) {
		r := failure(nil, invalidRequest("Every request must include a 'jsonrpc' member with a value of "+version+"."))
		return nil, false, &r
	}
	raws := x.rawCalls(batch)
	for i, item := range requests {
		c, r := x.readCall(item.(*php.Array), raws[i], i)
		if r != nil {
			return nil, false, r
		}
		calls = append(calls, c)
	}
	return calls, batch, nil
}

// rawCalls returns params and ids as they were sent, and records the calls in the journal.
func (x *request) rawCalls(batch bool) []journal.Call {
	message := x.Message()
	docs := [][]byte{message}
	if batch {
		docs = php.Elements(message)
		for _, m := range php.Members(message) { // {"0": {…}} is a list to PHP
			docs = append(docs, m.Raw)
		}
	}
	calls := make([]journal.Call, len(docs))
	for i, doc := range docs {
		calls[i] = exchange.ReadCall(doc)
	}
	if x.protocol == nil {
		x.NoteCalls(calls)
	} else if x.Route == route.JSONRPC { // it calls a method of the site
		x.NoteCalls(x.Calls())
	}
	return calls
}

// isOtherVersion finds versions that the schema's loose comparison accepts, such as "2": a single request may have them,
// one of a batch may not.
func isOtherVersion(request php.Value) bool { return request.(*php.Array).Member("jsonrpc") != version }

func adaptor(class string, errs []phpschema.Error) string {
	list := &php.Array{}
	for _, e := range errs {
		list.Append(e.Value())
	}
	text, _ := php.Encode(list) // errors are plain values
	return "Adaptor " + class + " received invalid input data: " + string(text) + "."
}

// readCall reads one call: its method must exist and its parameters conform. Access is checked later, when it runs.
func (x *request) readCall(request *php.Array, raw journal.Call, index int) (*rpcCall, *rpcResponse) {
	id := request.Member("id")
	refuse := func(e *rpcError) (*rpcCall, *rpcResponse) {
		r := failure(id, e)
		return nil, &r
	}
	name := request.Member("method").(string) // the schema takes nothing else
	m, ok := x.methodNamed(name)
	if !ok {
		return refuse(methodNotFound(name))
	}
	params, _ := request.Member("params").(*php.Array)
	if m.NullParams && params != nil {
		return refuse(invalidParams("The " + name + " method does not accept parameters."))
	}
	c := &rpcCall{method: m, id: id, arguments: &php.Array{}, raw: raw.Params, journal: index}
	for _, p := range m.parameters() {
		var v php.Value
		if params != nil {
			v, _ = params.Get(p.key)
		}
		if v == nil {
			if p.Required {
				return refuse(invalidParams("Missing required parameter: " + p.Name))
			}
			continue
		}
		v, problem := x.convert(p, v)
		if problem != nil {
			r := failure(nil, problem) // thrown where the module no longer knows the id
			return nil, &r
		}
		c.arguments.Set(p.key, v)
	}
	return c, nil
}

// rawFactory reads the parameters that name no factory of their own.
const rawFactory = `Drupal\jsonrpc\ParameterFactory\RawParameterFactory`

// convert checks an argument and hands it to its parameter factory.
func (x *request) convert(p param, v php.Value) (php.Value, *rpcError) {
	if p.Drupal != nil {
		return v, nil
	}
	class := strings.TrimPrefix(cmp.Or(p.FactoryClass(), rawFactory), `\`)
	errs, thrown := phpschema.Validate(v, p.schema)
	nonconforming := func(reason string) *rpcError {
		return invalidParams("The " + p.Name + " parameter does not conform to the parameter schema. " + reason)
	}
	switch {
	case errs != nil:
		return nil, nonconforming(adaptor(class, errs))
	case thrown == nil:
	case thrown.Class == "":
		return nil, internalError(thrown.Message)
	case thrown.Class == "TypeError":
		return nil, nonconforming(thrown.Message)
	default:
		return nil, uncaught
	}
	if p.IsEntity() {
		return x.state.loadEntity(x.d.core, v.(*php.Array))
	}
	return v, nil
}
