package reports

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"
)

// ServeOptions say what Serve shows and where.
type ServeOptions struct {
	Dir    string               // the folder of reports, searched with all its folders
	Listen string               // host:port; empty: 127.0.0.1:8082. Port 0 takes a free one
	Ready  func(address string) // told the address as http://host:port; nil: nobody
}

// Serve shows a folder of reports as local pages until ctx ends: bridges × areas, each bridge's trend over time, and
// every report with its differences to the one before.
func Serve(ctx context.Context, o ServeOptions) error {
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

// Handler serves the pages of Serve for a folder of reports, which has to be there.
func Handler(dir string) (http.Handler, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("serve reports: %s is no folder that can be read", dir)
	}
	s := &site{archive: &archive{dir: dir}}
	router := mux.NewRouter()
	router.HandleFunc("/", s.index).Methods(http.MethodGet, http.MethodHead)
	router.HandleFunc("/report/{id:[0-9a-f]{16}}", s.report).Methods(http.MethodGet, http.MethodHead)
	router.HandleFunc("/report/{id:[0-9a-f]{16}}.json", s.json).Methods(http.MethodGet, http.MethodHead)
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

// bridgeView is one bridge on the index: its newest report by area, and its runs over time.
type bridgeView struct {
	Name   string
	Latest archived   // the newest run that was not filtered or cut short; the newest where all were
	Cells  []areaCell // in the order of the index's areas
	Kept   int        // clauses, in the newest report
	Judged int        // or to be judged: that apply
	Runs   []archived // newest first
	Trend  string     // points of a line: kept clauses of those that apply, oldest first
}

func (s *site) index(w http.ResponseWriter, _ *http.Request) {
	read, unreadable, err := s.archive.scan()
	if err != nil {
		http.Error(w, "the reports cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	var areas []string
	for _, f := range read {
		for _, area := range f.Report.Areas() {
			if !slices.Contains(areas, area) {
				areas = append(areas, area)
			}
		}
	}
	s.write(w, "index.gohtml", struct {
		document
		Areas      []string
		Bridges    []bridgeView
		Unreadable []archived
	}{newDocument("bridgecheck: reports"), areas, bridgesOf(read, areas), unreadable})
}

// bridgesOf groups reports, newest first, by bridge: its name where it has one, else its address.
func bridgesOf(read []archived, areas []string) []bridgeView {
	var bridges []bridgeView
	for _, f := range read {
		name := cmp.Or(f.Report.Target.Name, f.Report.Target.URL)
		i := slices.IndexFunc(bridges, func(b bridgeView) bool { return b.Name == name })
		if i < 0 {
			i = len(bridges)
			bridges = append(bridges, bridgeView{Name: name, Latest: f})
		}
		bridges[i].Runs = append(bridges[i].Runs, f)
	}
	for i := range bridges {
		b := &bridges[i]
		if whole := slices.IndexFunc(b.Runs, archived.whole); whole >= 0 {
			b.Latest = b.Runs[whole]
		}
		for _, area := range areas {
			b.Cells = append(b.Cells, cellOf(b.Latest.Report, area, ""))
		}
		newest := b.Latest.Report.summarized()
		b.Kept, b.Judged = newest.Pass, newest.Total-newest.NotApplicable
		b.Trend = trend(b.Runs)
	}
	return bridges
}

// whole holds for a report that has every clause.
func (f archived) whole() bool { return !incomplete(f.Report) }

// trend gives the points of a line in a box of 100 × 30: the share of applying clauses that were kept, oldest run first.
// Runs that left clauses out cannot be compared with the others, and are no part of it.
func trend(runs []archived) string {
	runs = slices.DeleteFunc(slices.Clone(runs), func(f archived) bool { return !f.whole() })
	if len(runs) < 2 {
		return ""
	}
	var points []string
	for i, f := range slices.Backward(runs) {
		s := f.Report.summarized()
		share := 0.0
		if judged := s.Total - s.NotApplicable; judged > 0 {
			share = float64(s.Pass) / float64(judged)
		}
		x := 100 * float64(len(runs)-1-i) / float64(len(runs)-1)
		points = append(points, fmt.Sprintf("%.1f,%.1f", x, 29-28*share))
	}
	return strings.Join(points, " ")
}

// find gives the report that a request names, and the same bridge's one before it.
func (s *site) find(r *http.Request) (found archived, previous *Report, ok bool) {
	read, _, err := s.archive.scan()
	if err != nil {
		return archived{}, nil, false
	}
	for _, b := range bridgesOf(read, nil) {
		for i, f := range b.Runs {
			if f.ID != mux.Vars(r)["id"] {
				continue
			}
			if i+1 < len(b.Runs) {
				previous = b.Runs[i+1].Report
			}
			return f, previous, true
		}
	}
	return archived{}, nil, false
}

func (s *site) report(w http.ResponseWriter, r *http.Request) {
	f, previous, ok := s.find(r)
	if !ok {
		http.Error(w, "there is no such report", http.StatusNotFound)
		return
	}
	whole, err := s.archive.load(f)
	if err != nil {
		http.Error(w, "the report cannot be read any more: "+err.Error(), http.StatusInternalServerError)
		return
	}
	if previous != nil {
		whole.Since = Compare(previous, whole)
	}
	var b bytes.Buffer
	if err := WriteHTML(&b, whole); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = b.WriteTo(w) // the reader went away: nobody to tell
}

func (s *site) json(w http.ResponseWriter, r *http.Request) {
	f, _, ok := s.find(r)
	if !ok {
		http.Error(w, "there is no such report", http.StatusNotFound)
		return
	}
	whole, err := s.archive.load(f)
	if err != nil {
		http.Error(w, "the report cannot be read any more: "+err.Error(), http.StatusInternalServerError)
		return
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, whole); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = b.WriteTo(w)
}

func (s *site) write(w http.ResponseWriter, name string, data any) {
	var b bytes.Buffer
	if err := reportPage.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = b.WriteTo(w)
}
