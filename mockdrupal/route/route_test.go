package route

import (
	"net/http"
	"net/http/httptest"
	"testing"
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
		if name != want {
			t.Errorf("%s is the route %q, want %q", target, name, want)
		}
	}
	if _, vars := table.Find("/jsonrpc/methods/a.b"); vars["id"] != "a.b" {
		t.Errorf("variables %v", vars)
	}
}

func TestVerbIsOverriddenForPOSTOnly(t *testing.T) {
	for method, want := range map[string]string{http.MethodPost: "PUT", http.MethodGet: "GET"} {
		r := httptest.NewRequest(method, "/", nil)
		r.Header.Set("X-HTTP-Method-Override", "put")
		if got := Verb(r); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("/jsonrpc/methods/%2e")
	f.Add("//jsonrpc")
	table := NewTable(Drupal())
	f.Fuzz(func(t *testing.T, info string) {
		if i, _ := table.Find(Path(info)); i >= len(Drupal()) {
			t.Errorf("%q is route %d", info, i)
		}
	})
}
