package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// planted are secrets of every sort that a configuration can name, each by its environment variable.
var planted = map[string]string{
	"CANARY_PASSWORD": `C4n4ry-p&ss "word"/+%<one>`,
	"CANARY_TOKEN":    "C4n4ry.token-two_eyJhbGciOiJIUzI1NiJ9",
	"CANARY_KEY":      "C4n4ry-header-three",
	"CANARY_COOKIE":   "C4n4ry%2Ccookie-four",
}

// encodings are the forms in which the echo shows what it got.
var encodings = []func(string) string{
	func(s string) string { return s },
	url.QueryEscape,
	url.PathEscape,
	html.EscapeString,
	strconv.Quote,
	strconv.QuoteToASCII,
	func(s string) string { return hex.EncodeToString([]byte(s)) },
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte("x" + s)) },
	func(s string) string { return base64.URLEncoding.EncodeToString([]byte("xy" + s)) },
	func(s string) string { return eachByte(s, "%%%02x") },
	func(s string) string { return eachByte(s, `\u%04x`) },
	func(s string) string { return eachByte(s, "&#%d;") },
}

func eachByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// echo is a bridge that gives back all that it gets, in every encoding, in headers and body, and prints it.
func echo(w http.ResponseWriter, r *http.Request) {
	var got []string
	for _, values := range r.Header {
		for _, value := range values {
			got = append(got, value)
			if _, rest, ok := strings.Cut(value, " "); ok {
				if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
					got = append(got, string(plain))
				}
				got = append(got, rest)
			}
		}
	}
	var shown []string
	for _, encode := range encodings {
		for _, text := range got {
			shown = append(shown, encode(text))
		}
	}
	fmt.Println(strings.Join(shown, " "))
	fmt.Fprintln(os.Stderr, strings.Join(got, " "))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", strings.NewReplacer("\r", "", "\n", "").Replace(strings.Join(got, ", ")))
	w.Header().Set("Set-Cookie", "echo="+url.QueryEscape(strings.Join(got, " ")))
	body, err := json.Marshal(map[string]any{"tools": []any{map[string]any{"name": "echo", "description": strings.Join(shown, " "), "inputSchema": map[string]any{}}},
		"error": map[string]any{"code": "echo", "message": strings.Join(got, " ")}, "result": shown})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusTeapot)
	}
	_, _ = w.Write(body) // a caller who went away is no one's fault
}

// echoes is the bridge as a process: it listens where BRIDGE_LISTEN says.
func echoes() {
	if err := http.ListenAndServe(os.Getenv("BRIDGE_LISTEN"), http.HandlerFunc(echo)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// forms are the texts in which a secret would be readable, beside those that only an echo makes.
func forms(secret string) [][]byte {
	all := [][]byte{[]byte(secret)}
	for _, encode := range encodings {
		all = append(all, []byte(encode(secret)))
		inJSON, _ := json.Marshal(encode(secret))
		all = append(all, bytes.Trim(inJSON, `"`), []byte(html.EscapeString(encode(secret))))
	}
	for pad := range 3 { // the characters of base64 that the secret alone decides
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + secret))
		all = append(all, []byte(encoded[(pad*8+5)/6:(pad+len(secret))*8/6]))
	}
	return all
}

func TestPlantedSecretsOccurNowhere(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no run is searched for secrets")
	for name, secret := range planted {
		t.Setenv(name, secret)
	}
	dir := t.TempDir()
	configuration := filepath.Join(dir, "canary.yaml")
	must.Do(t, os.WriteFile(configuration, []byte(`
identities:
  agent: {basic: {user: agent, password: {env: CANARY_PASSWORD}}}
  agent2: {bearer: {env: CANARY_TOKEN}}
  service: {headers: {X-Api-Key: {env: CANARY_KEY}, Cookie: {env: CANARY_COOKIE}}}
  outsider: {headers: {Authorization: {env: CANARY_TOKEN}}}
`), 0o600))
	out := filepath.Join(dir, "report")
	o := command(t, "run", "--exec", "echoes", "--config", configuration, "--report-dir", out, "--skip", "load", "--skip", "fresh")
	must.Assert(t, o.code == 1, "the run ended with %d: %s", o.code, o.stderr)
	outputs := map[string][]byte{"stdout": []byte(o.stdout), "stderr": []byte(o.stderr)}
	must.Do(t, filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		outputs[filepath.Base(path)], err = os.ReadFile(path)
		return err
	}))
	must.Assert(t, len(outputs["bridge.log"]) != 0 && len(outputs["report.json"]) != 0 && bytes.Contains(outputs["bridge.log"], []byte("[redacted]")),
		"the run left %d bytes of bridge.log and %d of report.json: this proves nothing", len(outputs["bridge.log"]), len(outputs["report.json"]))
	for where, data := range outputs {
		for name, secret := range planted {
			for _, form := range forms(secret) {
				if at := bytes.Index(data, form); at >= 0 {
					t.Errorf("%s stands in %s as %q: …%q…", name, where, form, data[max(0, at-80):min(len(data), at+len(form)+40)])
					break
				}
			}
		}
	}
}
