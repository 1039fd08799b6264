package selftest

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

// nullTarget is something that is no bridge: it must pass no clause.
type nullTarget struct {
	Name    string
	Timeout time.Duration                    // of a request to it; 0: the default of a run
	Start   func() (url string, stop func()) // starts it on 127.0.0.1
}

// nullTargets returns all null targets.
func nullTargets() []nullTarget {
	return []nullTarget{
		{Name: "nothing-listens", Start: nothing},
		{Name: "404-to-all", Start: handler(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", http.StatusNotFound) })},
		{Name: "404-in-the-envelope-to-all", Start: handler(respond(http.StatusNotFound, "application/json", `{"error":{"code":"tool_not_found","message":"not found"}}`))},
		{Name: "500-to-all", Start: handler(respond(http.StatusInternalServerError, "text/plain", "Internal Server Error"))},
		{Name: "403-in-the-envelope-to-all", Start: handler(respond(http.StatusForbidden, "application/json", `{"error":{"code":"access_denied","message":"no"}}`))},
		{Name: "empty-object-to-all", Start: handler(respond(http.StatusOK, "application/json", `{}`))},
		{Name: "html-to-all", Start: handler(respond(http.StatusOK, "text/html; charset=utf-8", "<!DOCTYPE html><title>Welcome</title>"))},
		{Name: "hangs", Timeout: 50 * time.Millisecond, Start: hangs},
		{Name: "garbage", Start: raw("\x16\x03\x01\x00\xff\x00 this is no HTTP\n\n\n")},
		{Name: "cut-short", Start: raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"tools\":[")},
		{Name: "redirect-loop", Start: handler(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })},
		{Name: "plain-http-behind-https", Start: func() (string, func()) {
			url, stop := handler(respond(http.StatusOK, "application/json", `{}`))()
			return "https" + url[len("http"):], stop
		}},
		{Name: "untrusted-certificate", Start: func() (string, func()) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(respond(http.StatusOK, "application/json", `{"tools":[]}`)))
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
			server.StartTLS()
			return server.URL, server.Close
		}},
		{Name: "echoes-the-request", Start: handler(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.Copy(w, r.Body) //nolint:errcheck // the caller has gone
		})},
		{Name: "echoes-the-query-as-json", Start: handler(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]any{"path": r.URL.Path, "query": r.URL.Query(), "headers": r.Header}) //nolint:errcheck // the caller has gone
		})},
	}
}

// respond responds to every request alike.
func respond(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body) //nolint:errcheck // the caller has gone
	}
}

// handler starts a server.
func handler(h http.HandlerFunc) func() (string, func()) {
	return func() (string, func()) {
		server := httptest.NewServer(h)
		return server.URL, server.Close
	}
}

// nothing returns an address that nothing listens at.
func nothing() (string, func()) {
	at := listen()
	at.Close()
	return "http://" + at.Addr().String(), func() {}
}

// hangs accepts connections and never sends anything.
func hangs() (string, func()) {
	at := listen()
	return "http://" + at.Addr().String(), func() { at.Close() }
}

// raw sends the same bytes on every connection after something was received, and closes it.
func raw(response string) func() (string, func()) {
	return func() (string, func()) {
		at := listen()
		go func() {
			for {
				conn, err := at.Accept()
				if err != nil {
					return
				}
				conn.Read(make([]byte, 1024))  //nolint:errcheck // the response is the same whatever was received
				io.WriteString(conn, response) //nolint:errcheck // the caller has gone
				conn.Close()
			}
		}()
		return "http://" + at.Addr().String(), func() { at.Close() }
	}
}

func listen() net.Listener {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return at
}
