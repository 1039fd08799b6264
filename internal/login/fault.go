package login

import (
	"fmt"

	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// Layers are what has to fit before a caller has a token that is accepted, in the order in which a client meets them.
var Layers = []string{atChallenge, atResource, atServer, atPKCE, atRegistration, atAuthorization, atToken, atScope, atAudience, atRefresh}

const (
	atChallenge     = "challenge"
	atResource      = "resource metadata"
	atServer        = "server metadata"
	atPKCE          = "PKCE"
	atRegistration  = "registration"
	atAuthorization = "authorization"
	atToken         = "token"
	atScope         = "scope"
	atAudience      = "audience"
	atRefresh       = "refresh"
)

// The states of a step.
const (
	OK      = "ok"
	Fails   = "fails"
	Warns   = "warns"   // a client has to do without it
	Skipped = "skipped" // an earlier step, or the way of logging in, keeps it from being tried
)

// NoResponse is the fault of a bridge that cannot be reached.
const NoResponse = "no-response"

// Step is one layer at one server, as a client found it.
type Step struct {
	Layer  string `json:"layer"`
	State  string `json:"state"`
	Fault  string `json:"fault,omitempty"`  // what is wrong, from the table
	Clause string `json:"clause,omitempty"` // of the contract, or of the standard where the authorization server is at fault
	Saw    string `json:"saw,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Error is a step that ends a login.
type Error struct{ Step }

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%s): %s", e.Layer, e.Saw, e.Clause, e.Remedy)
}

// fault is what may be wrong at a layer. Without a remedy it has that of the clause of the contract.
type fault struct{ layer, clause, remedy string }

var faults = map[string]fault{
	NoResponse:                  {atChallenge, "", "Check the address, and whether the bridge is up."},
	"no-401":                    {atChallenge, "auth/every-request", ""},
	"no-challenge":              {atChallenge, "auth/challenge", ""},
	"no-metadata-address":       {atChallenge, "auth/challenge-metadata", ""},
	"no-resource-metadata":      {atResource, "auth/metadata", ""},
	"resource-metadata-unclear": {atResource, "auth/metadata", "Encode one JSON object, each name once, as application/json in UTF-8."},
	"other-resource":            {atResource, "auth/metadata", "Set `resource` to the URL of the MCP endpoint as its clients know it, letter for letter, also behind a proxy."},
	"no-authorization-server":   {atResource, "auth/metadata", "List the issuer of the tokens in `authorization_servers`, and `header` in `bearer_methods_supported`."},
	"issuer-not-listed": {atResource, "rfc9728 7.6; mcp-auth Authorization Server Location",
		"Give by --issuer a server that the bridge lists, letter for letter, if you trust it; or set `authorization_servers` at the bridge."},
	"no-server-metadata": {atServer, "rfc8414 3.1; mcp-auth Authorization Server Metadata Discovery",
		"Serve the metadata at /.well-known/oauth-authorization-server followed by the path of the issuer, or as OpenID Connect Discovery; or name another issuer in `authorization_servers`."},
	"server-metadata-unclear": {atServer, "rfc8414 3.2; rfc8259 4", "Encode one JSON object, each name once: clients could read different endpoints out of this one."},
	"other-issuer":            {atServer, "rfc8414 3.3", "Make `issuer` in the metadata of the authorization server the same text as in `authorization_servers`, also in the slash at its end."},
	"no-endpoint":             {atServer, "rfc8414 2; rfc9700 2.6", "Name the absolute https URL of the endpoint; http is for loopback alone."},
	"no-pkce":                 {atPKCE, "mcp-auth Authorization Code Protection; rfc7636 4.2", "List S256 in `code_challenge_methods_supported`; clients of MCP stop without it."},
	"no-registration": {atRegistration, "mcp-auth Client Registration Approaches; rfc7591 3",
		"Offer client id metadata documents or a `registration_endpoint`, or register a client by hand and give its id by --client-id."},
	"secret-without-issuer": {atRegistration, "rfc9728 7.6; mcp-auth Authorization Server Location",
		"Name by --issuer the server that may receive the secret of the client: any bridge can name a server of its own."},
	"client-id-not-taken":  {atRegistration, "mcp-auth Client ID Metadata Documents", "Set `client_id_metadata_document_supported`, or give the id of a client that is registered."},
	"registration-refused": {atRegistration, "rfc7591 3.2", "Let clients register with a redirect to loopback (RFC 8252 7.3) and without a secret, or register one by hand and give its id by --client-id."},
	"registration-unclear": {atRegistration, "rfc7591 3.2.1", "Return the metadata that the client sent, with its `client_id`, the redirect unchanged."},
	"login-refused":        {atAuthorization, "rfc6749 4.1.2.1", "Look into the log of the authorization server; it refused the request for the reason that it names."},
	"other-state":          {atAuthorization, "rfc6749 4.1.2; rfc9700 4.7.1", "Return `state` as the client sent it; a response with another one may be an attack."},
	"other-responder":      {atAuthorization, "rfc9207 2.4", "Return the issuer as `iss`; a response of another server may be an attack."},
	"no-device-endpoint":   {atAuthorization, "rfc8628 3.1", "Name a `device_authorization_endpoint`, or log in with a browser on this machine."},
	"token-refused":        {atToken, "rfc6749 5.2; rfc7636 4.6", "Check the redirect, the client's authentication and the PKCE verifier at the token endpoint."},
	"token-unclear":        {atToken, "rfc6749 5.1", "Encode one JSON object with `access_token` and `token_type`, each once."},
	"other-token-type":     {atToken, "rfc6750 4; mcp-auth Token Requirements", "Issue tokens of the type Bearer."},
	"token-not-accepted":   {atToken, "auth/right-token", "Compare issuer, keys and clocks of the bridge and the authorization server; the bridge refuses a token that was just issued for it."},
	"fewer-scopes":         {atScope, "rfc6749 3.3; auth/challenge-scope", "Let the authorization server issue the scopes that the challenge and the metadata of the bridge name, to this client and account."},
	"insufficient-scope":   {atScope, "auth/insufficient-scope", "Name the scopes that the bridge requires in its challenge, so that clients ask for them."},
	"other-audience": {atAudience, "auth/token-audience; rfc8707 2",
		"Make the authorization server honour the parameter `resource`: the `aud` of its tokens has to be the URL of the MCP endpoint."},
	"no-refresh-token":       {atRefresh, "rfc6749 1.5; mcp-auth Refresh Tokens", "Issue a refresh token to this client, or expect people to log in again whenever a token expires."},
	"refresh-refused":        {atRefresh, "rfc6749 6", "Accept the refresh token that was issued with the access token, once."},
	"refreshed-not-accepted": {atRefresh, "rfc6749 6; rfc8707 2.2; auth/token-audience", "Issue the refreshed token for the same resource and with the same scopes as the first one."},
}

// step is a step with a fault of the table. The remedy of a clause stands in the contract.
func (f fault) step(name, state, saw string) Step {
	s := Step{Layer: f.layer, State: state, Fault: name, Clause: f.clause, Saw: saw, Remedy: f.remedy}
	if s.Remedy == "" {
		all, err := contract.Load()
		if err != nil {
			panic(err) // it is embedded, and tests load it
		}
		if clause, ok := all.Clause(f.clause); ok {
			s.Remedy = clause.Fix.Any
		}
	}
	return s
}
