package serve

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/bridgecheck/bridgecheck/reports/internal/sample"
)

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	older, other := sample.Every(), sample.Kept()
	older.Started = sample.Started.Add(-time.Hour)
	other.Target = reports.Target{URL: "http://other.example", Name: "<script>alert(1)</script>"}
	for name, r := range map[string]*reports.Report{"today": sample.Every(), "yesterday": older, "other": other} {
		must.Do(t, format.WriteAll(r, filepath.Join(dir, name)))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "broken.json"), []byte(`{"schema": "1.0"`), 0o600))
	return dir
}

func get(t *testing.T, handler http.Handler, method, path, host string) (int, string) {
	t.Helper()
	request := httptest.NewRequest(method, path, nil)
	request.Host = host
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

func TestServedPages(t *testing.T) {
	handler := must.Get(Handler(folder(t)))(t)
	status, index := get(t, handler, "GET", "/", "localhost:8082")
	must.Assert(t, status == 200, "the index has the status %d", status)
	for _, want := range []string{"Example bridge", "&lt;script&gt;alert(1)&lt;/script&gt;", "yesterday/report.json", "run by run", "<code>broken.json</code> the JSON ends early", `<span class="n">2 of 10</span>`, `#area=describe"><span class="hidden">describe: 1 failed 1 fixed 1 known </span>`} {
		must.Expect(t, strings.Contains(index, want), "the index lacks %q", want)
	}
	link := regexp.MustCompile(`<a href="(/report/[0-9a-f]{16})"><bdi>Example bridge`).FindStringSubmatch(index)
	must.Assert(t, link != nil, "the index does not link to the bridge's newest report")
	if status, page := get(t, handler, "GET", link[1], "127.0.0.1:8082"); status != 200 || !strings.Contains(page, "Since the earlier report") {
		t.Errorf("%s has the status %d, without the differences to the report before it", link[1], status)
	}
	status, text := get(t, handler, "GET", link[1]+".json", "[::1]:8082")
	r, err := reports.Parse([]byte(text))
	must.Expect(t, status == 200 && err == nil && len(r.Results[4].Evidence) == 4, "%s.json has the status %d: %v", link[1], status, err)
}

func TestServeRefuses(t *testing.T) {
	handler := must.Get(Handler(folder(t)))(t)
	for _, c := range []struct {
		name, method, path, host string
		want                     int
	}{
		{"another site's name", "GET", "/", "evil.example", 403},
		{"an unknown report", "GET", "/report/0123456789abcdef", "localhost", 404},
		{"a file's name", "GET", "/report/today", "localhost", 404},
		{"another method", "POST", "/", "localhost", 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := get(t, handler, c.method, c.path, c.host)
			must.Expect(t, got == c.want, "status is %d, want %d", got, c.want)
		})
	}
	_, err := Handler(filepath.Join(t.TempDir(), "none"))
	must.Expect(t, err != nil, "a folder that is not there is served")
}

func TestServeShowsNewReportsAndEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan string, 1)
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{Dir: dir, Listen: "127.0.0.1:0", Ready: func(address string) { ready <- address }})
	}()
	var address string
	select {
	case address = <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	body := func() string {
		response := must.Get(http.Get(address))(t)
		defer response.Body.Close()
		data := must.Get(io.ReadAll(response.Body))(t)
		return string(data)
	}
	must.Has(t, body(), "There is no report in this folder yet", "an empty folder")
	must.Do(t, format.WriteAll(sample.Kept(), dir))
	must.Has(t, body(), "Example bridge", "the page with a new report")
	cancel()
	err := <-done
	must.Expect(t, err == nil, "ends with %v", err)
}
