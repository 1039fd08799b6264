package module

import (
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// challenge is the realm that the module's own refusals name.
const challenge = `Bearer realm="MCP Tools"`

// perTool is GET or POST /mcp/tools/{tool} of v1.4 and later: it checks the tool of the path, then runs whatever method
// the body names.
func perTool(v *mockdrupal.Visit) *mockdrupal.Response {
	id, _ := v.Exposed(v.Var("tool")) // else there were no such address
	m, ok := v.Tool(id)
	if !ok {
		return v.JSON(http.StatusNotFound, php.Map(
			php.Pair{Name: "jsonrpc", Value: "2.0"},
			php.Pair{Name: "error", Value: php.Map(php.Pair{Name: "code", Value: int64(-32601)}, php.Pair{Name: "message", Value: "Method not found"})},
			php.Pair{Name: "id", Value: nil},
		))
	}
	if a := authorize(v, m); a != nil {
		return a
	}
	return v.JSONRPC()
}

// authorize enforces the level and scopes that the tool's annotations name.
func authorize(v *mockdrupal.Visit, m *fixtures.Method) *mockdrupal.Response {
	level, scopes := requirements(m)
	switch {
	case level == "required" && v.Scheme() == "":
		return v.Empty(http.StatusUnauthorized).With("WWW-Authenticate", challenge)
	case len(scopes) > 0 && v.Scheme() != "bearer":
		return v.Empty(http.StatusUnauthorized).With("WWW-Authenticate", challenge)
	}
	var missing []string
	for _, scope := range scopes {
		if !v.HasScope(scope) {
			missing = append(missing, scope)
		}
	}
	if len(missing) > 0 {
		return v.Empty(http.StatusForbidden).With("WWW-Authenticate", challenge+`, error="insufficient_scope", scope="`+strings.Join(missing, " ")+`"`)
	}
	return nil
}

// requirements reads annotations.auth.
func requirements(m *fixtures.Method) (level string, scopes []string) {
	notes, err := php.Decode(m.MCP.Annotations)
	members, ok := notes.(*php.Array)
	if err != nil || !ok {
		return "", nil
	}
	auth, ok := members.Member("auth").(*php.Array)
	if !ok {
		return "", nil
	}
	if list, ok := auth.Member("scopes").(*php.Array); ok {
		for i := range list.Len() {
			_, scope := list.At(i)
			scopes = append(scopes, php.ToString(scope))
		}
	}
	return php.ToString(auth.Member("level")), scopes
}
