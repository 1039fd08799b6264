package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const maxBody = 2 << 20

// Bridge serves the three endpoints. Every response passes through respond.
type Bridge struct {
	site     *Site
	pageSize int
}

func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, verbs := b.endpoint(r.URL.Path)
	switch {
	case endpoint == nil:
		respond(w, r, nil, failure(404, "not_found", "There is no path %s.", r.URL.Path))
	case !slices.Contains(verbs, r.Method):
		f := failure(405, "method_not_allowed", "%s does not take %s.", r.URL.Path, r.Method)
		f.Header = http.Header{"Allow": {strings.Join(verbs, ", ")}}
		respond(w, r, nil, f)
	default:
		body, err := endpoint(r)
		respond(w, r, body, err)
	}
}

func (b *Bridge) endpoint(path string) (endpoint func(*http.Request) (any, error), verbs []string) {
	switch path {
	case "/mcp/tools/list":
		return b.list, []string{"GET", "HEAD"}
	case "/mcp/tools/describe":
		return b.describe, []string{"GET", "HEAD"}
	case "/mcp/tools/invoke":
		return b.invoke, []string{"POST"}
	}
	return nil, nil
}

var cursorForm = regexp.MustCompile(`^([0-9a-f]{12})\.([0-9]{1,9})$`)

func (b *Bridge) list(r *http.Request) (any, error) {
	tools, err := b.discover(r)
	if err != nil {
		return nil, err
	}
	// A cursor holds the position and a version of the list, so that an old one is refused (list/change-between-pages).
	hash := sha256.New()
	for _, tool := range tools {
		fmt.Fprintf(hash, "%q", tool.Name)
	}
	version := fmt.Sprintf("%.6x", hash.Sum(nil))
	offset := 0
	if cursor, err := one(r, "cursor"); err != nil {
		return nil, err
	} else if cursor != "" {
		parts := cursorForm.FindStringSubmatch(cursor)
		if parts == nil || parts[1] != version {
			return nil, failure(400, "invalid_cursor", "The cursor is not one of this list: begin at the first page.")
		}
		offset, _ = strconv.Atoi(parts[2]) // nine digits at most
	}
	next := offset + b.pageSize
	page := struct {
		Tools      []*Tool `json:"tools"`
		NextCursor string  `json:"nextCursor,omitempty"`
	}{Tools: tools[min(offset, len(tools)):min(next, len(tools))]}
	if next < len(tools) { // list/page-boundary-exact
		page.NextCursor = fmt.Sprintf("%s.%d", version, next)
	}
	return page, nil
}

func (b *Bridge) describe(r *http.Request) (any, error) {
	tools, err := b.discover(r) // before the name: permission comes first (errors/precedence)
	if err != nil {
		return nil, err
	}
	name, err := one(r, "name")
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, failure(400, "missing_parameter", "The parameter name is missing.")
	}
	tool := find(tools, name)
	if tool == nil {
		return nil, notFound(name)
	}
	return map[string]any{"tool": tool}, nil
}

func (b *Bridge) invoke(r *http.Request) (any, error) {
	data, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, failure(413, "request_too_large", "The body is longer than %d bytes.", maxBody)
	} else if err != nil {
		return nil, failure(400, "invalid_request", "The body cannot be read.")
	}
	// The discovery permission is not asked for: who may run a tool may do so by its name (access/discovery-not-execution).
	tools, _, err := b.site.tools(r.Context(), forwarded(r))
	if err != nil {
		return nil, err
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return nil, failure(415, "unsupported_media_type", "The body has to be application/json.")
	}
	var call map[string]json.RawMessage // not a struct: that matches names without case
	if err := decode(data, &call); err != nil {
		return nil, failure(400, "invalid_json", "The body is not a JSON object: %v", err)
	}
	var name *string
	if json.Unmarshal(call["name"], &name) != nil || name == nil || *name == "" {
		return nil, failure(400, "missing_parameter", "The parameter name is missing, or no string.")
	}
	if !bytes.HasPrefix(call["arguments"], []byte("{")) {
		return nil, failure(400, "missing_parameter", "The parameter arguments is missing, or no object.")
	}
	tool := find(tools, *name)
	if tool == nil {
		return nil, notFound(*name)
	}
	result, err := b.site.call(r.Context(), forwarded(r), tool, call["arguments"]) // the site validates the arguments
	return map[string]any{"result": result}, err
}

// discover returns the tools of a caller who may discover tools (access/list-403).
func (b *Bridge) discover(r *http.Request) ([]*Tool, error) {
	tools, may, err := b.site.tools(r.Context(), forwarded(r))
	if err == nil && !may {
		err = failure(403, "access_denied", "The site does not say that you may discover tools (meta.mcp.discovery).")
	}
	return tools, err
}

// forwarded returns the headers of a request that the site receives, too.
func forwarded(r *http.Request) http.Header {
	header := http.Header{}
	for _, name := range []string{"Authorization", "Accept-Language"} {
		if values := r.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	return header
}

// one returns the value of a query parameter; `name[]=x` is another parameter (describe/name-not-scalar).
func one(r *http.Request, name string) (string, error) {
	values := r.URL.Query()[name]
	if len(values) > 1 {
		return "", failure(400, "invalid_request", "The parameter %s is repeated.", name)
	}
	return strings.Join(values, ""), nil
}

var takesGzip = regexp.MustCompile(`(?i)\bgzip\s*(;\s*q=(1(\.0*)?|0?\.\d*[1-9]\d*))?\s*(,|$)`)

func respond(w http.ResponseWriter, r *http.Request, body any, err error) {
	status, header := 200, w.Header()
	if err != nil {
		f := (*Failure)(nil)
		if !errors.As(err, &f) {
			log.Print(err)
			f = failure(500, "internal_error", "The bridge failed.")
		}
		maps.Copy(header, f.Header)
		status, body = f.Status, map[string]any{"error": f}
	}
	var data bytes.Buffer
	if err := encode(&data, body); err != nil {
		log.Print(err)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Vary", "Accept-Encoding")
	if data.Len() > 1024 && takesGzip.MatchString(r.Header.Get("Accept-Encoding")) {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		_, _ = writer.Write(data.Bytes()) // a buffer takes everything
		_ = writer.Close()
		data = packed
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("Content-Length", strconv.Itoa(data.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(data.Bytes()) // a caller who has gone needs no response; HEAD has none
}
