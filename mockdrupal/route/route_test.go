package route

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

func TestPathsAreReadAsDrupalsRouterDoes(t *testing.T) {
	table := NewTable(Drupal())
	for target, want := range map[string]string{
		"/jsonrpc":                                JSONRPC,
		"/index.php/jsonrpc":                      JSONRPC,
		"/JSONRPC///":                             JSONRPC,
		"/jsonrpc/methods?x":                      Methods,
		"/jsonrpc/methods/content.search":         Method,
		"/jsonrpc/methods/test%252Eecho":          Method,
		"/user/login?_format=json":                Login,
		"/oauth/revoke":                           Token,
		"/.well-known/oauth-authorization-server": OAuth,
		"/jsonrpc//methods":                       "",
		"/jsonrpc/methods%2F":                     "", // an encoded slash at the end is no slash at the end
		"/index.phpx/jsonrpc":                     "",
		"/jsonrpc/methods/%FF":                    "",
		"/":                                       "",
	} {
		name := ""
		if i, _ := table.Find(Path(PathInfo(httptest.NewRequest(http.MethodGet, target, nil)))); i >= 0 {
			name = Drupal()[i].Name
		}
		must.Expect(t, name == want, "%s is the route %q, want %q", target, name, want)
	}
	_, vars := table.Find("/jsonrpc/methods/a.b")
	must.Expect(t, vars["id"] == "a.b", "variables %v", vars)
}

func TestVerbIsOverriddenForPOSTOnly(t *testing.T) {
	for method, want := range map[string]string{http.MethodPost: "PUT", http.MethodGet: "GET"} {
		r := httptest.NewRequest(method, "/", nil)
		r.Header.Set("X-HTTP-Method-Override", "put")
		must.Equal(t, Verb(r), want, "Verb of %s", method)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("/jsonrpc/methods/%2e")
	f.Add("//jsonrpc")
	table := NewTable(Drupal())
	f.Fuzz(func(t *testing.T, info string) {
		i, _ := table.Find(Path(info))
		must.Expect(t, i < len(Drupal()), "%q is route %d", info, i)
	})
}
