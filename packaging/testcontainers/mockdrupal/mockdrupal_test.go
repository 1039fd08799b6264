package mockdrupal_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/bridgecheck/bridgecheck/packaging/testcontainers/mockdrupal"
)

func TestOptions(t *testing.T) {
	req := testcontainers.GenericContainerRequest{}
	req.Cmd = []string{"mock"}
	for _, option := range []testcontainers.CustomizeRequestOption{mockdrupal.WithSite("my-site.yaml"), mockdrupal.WithControl("secret")} {
		if err := option(&req); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(req.Cmd, []string{"mock", "--site", "/site.yaml"}) || len(req.Files) != 1 || req.Files[0].HostFilePath != "my-site.yaml" || req.Files[0].ContainerFilePath != "/site.yaml" {
		t.Errorf("the command is %q with the files %+v", req.Cmd, req.Files)
	}
	if req.Env["BRIDGECHECK_CONTROL_TOKEN"] != "secret" {
		t.Errorf("the environment is %v", req.Env)
	}
}

// TestRun starts containers of the image BRIDGECHECK_IMAGE.
func TestRun(t *testing.T) {
	image := os.Getenv("BRIDGECHECK_IMAGE")
	if image == "" {
		t.Skip("SKIPPED: BRIDGECHECK_IMAGE names no image, so the mock is not started in a container")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	site := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(site, []byte("roles: {agent: [use jsonrpc services]}\nusers: [{uid: 2, name: someone, password: secret, roles: [agent]}]\nmethods: [{id: only.one, behaviour: echo}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mock, err := mockdrupal.Run(ctx, image, mockdrupal.WithSite(site), mockdrupal.WithControl("token"))
	testcontainers.CleanupContainer(t, mock)
	if err != nil {
		t.Fatal(err)
	}
	url, err := mock.URL(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if journal := get(t, ctx, url+"/-/mock/journal", func(r *http.Request) { r.Header.Set("Authorization", "Bearer token") }); strings.Contains(journal, "jsonrpc") {
		t.Errorf("before the first request the journal is %s", journal)
	}
	if methods := get(t, ctx, url+"/jsonrpc/methods", func(r *http.Request) { r.SetBasicAuth("someone", "secret") }); !strings.Contains(methods, `"only.one"`) {
		t.Errorf("the methods are not those of the file: %s", methods)
	}
	if journal := get(t, ctx, url+"/-/mock/journal", func(r *http.Request) { r.Header.Set("Authorization", "Bearer token") }); !strings.Contains(journal, "jsonrpc") {
		t.Errorf("after a request the journal is %s", journal)
	}
}

// get returns the body of a response of 200.
func get(t *testing.T, ctx context.Context, url string, authenticate func(*http.Request)) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	authenticate(req)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, response.Status, err, body)
	}
	return string(body)
}
