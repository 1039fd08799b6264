// Package serve shows a folder of reports as local pages: bridges side by side, each bridge's runs over time, and every
// report with its differences to the one before. It reads the folder again for each request, writes nothing, and serves
// requests for this machine only.
package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
	"github.com/gorilla/mux"
)

// Options say what Run shows and where.
type Options struct {
	Dir    string               // the folder of reports, searched with all its folders
	Listen string               // host:port; empty: 127.0.0.1:8082. Port 0 takes a free one
	Ready  func(address string) // called with the address, http://host:port; nil: not called
}

// Run shows a folder of reports as local pages until ctx ends: bridges × areas, each bridge's trend over time, and
// every report with its differences to the one before.
func Run(ctx context.Context, o Options) error {
	handler, err := Handler(o.Dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmp.Or(o.Listen, "127.0.0.1:8082"))
	if err != nil {
		return fmt.Errorf("serve reports: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	if o.Ready != nil {
		o.Ready("http://" + listener.Addr().String())
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve reports: %w", err)
	}
	return nil
}

// Handler serves the pages of Run for a folder of reports, which has to be there.
func Handler(dir string) (http.Handler, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("serve reports: %s is no folder that can be read", dir)
	}
	s := &site{archive: &archive{dir: dir}}
	router := mux.NewRouter()
	router.HandleFunc("/", s.index).Methods(http.MethodGet, http.MethodHead)
	router.HandleFunc("/report/{id:[0-9a-f]{16}}", s.report("html")).Methods(http.MethodGet, http.MethodHead)
	router.HandleFunc("/report/{id:[0-9a-f]{16}}.json", s.report("json")).Methods(http.MethodGet, http.MethodHead)
	return local(router), nil
}

// local lets only requests for an address or localhost through, so that no page on the web reaches the reports by a
// name that it points at this machine.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			http.Error(w, "open this page as localhost or by its address", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Frame-Options", "DENY")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

type site struct{ archive *archive }

func (s *site) index(w http.ResponseWriter, _ *http.Request) {
	runs, unreadable, err := s.archive.scan()
	if err != nil {
		http.Error(w, "the reports cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, "text/html; charset=utf-8", func(w io.Writer) error { return format.WriteIndex(w, runs, unreadable) })
}

// find returns the report that a request names, and the same bridge's one before it; nil: there is none.
func (s *site) find(r *http.Request) (found *format.Run, previous *reports.Report) {
	runs, _, err := s.archive.scan()
	if err != nil {
		return nil, nil
	}
	for _, run := range runs { // the newest first
		switch {
		case found == nil && run.ID == mux.Vars(r)["id"]:
			found = &run
		case found != nil && run.Bridge() == found.Bridge():
			return found, run.Report
		}
	}
	return found, nil
}

// report sends a run's report in the format of that name; a page shows what changed from the run before it.
func (s *site) report(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		run, previous := s.find(r)
		if run == nil {
			http.Error(w, "there is no such report", http.StatusNotFound)
			return
		}
		report, err := s.archive.load(*run)
		if err != nil {
			http.Error(w, "the report cannot be read any more: "+err.Error(), http.StatusInternalServerError)
			return
		}
		f, err := format.Named(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if previous != nil && name == "html" {
			report.Since = reports.Compare(previous, report)
		}
		send(w, f.MediaType, func(w io.Writer) error { return f.Write(w, report) })
	}
}

// send sends what write writes, or why it could not.
func send(w http.ResponseWriter, mediaType string, write func(io.Writer) error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = b.WriteTo(w) // the reader is gone
}
