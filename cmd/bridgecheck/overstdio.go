package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// stdioURL stands for a bridge of --mcp-stdio until it is started.
const stdioURL = "http://127.0.0.1"

// overStdio starts the bridge of --mcp-stdio, which nothing but its stdin and stdout leads to, and serves it to the run at an
// address of this machine. A mock Drupal is there for its environment; that the bridge acts as the account service of it is for
// the capability auth-service to say.
func (s *stage) overStdio(ctx context.Context, plan *plan, o engine.Options) error {
	drupal, err := s.mock(ctx, plan, "127.0.0.1:0", o)
	if err != nil {
		return err
	}
	if !slices.Contains(o.Capabilities, "auth-service") {
		s.drupal = nil
	}
	log, err := plan.openLog(o)
	if err != nil {
		return err
	}
	env := bridgeEnvironment(plan.env, append(s.environment(drupal, o), serviceAccount...)...)
	if s.stdio, err = speak(plan.mcpStdio, plan.group, log, env); err != nil {
		return err
	}
	front := &stdioFront{start: s.stdio, spoken: map[string]*spoken{}}
	limit, cancel := context.WithTimeout(ctx, plan.readyTimeout)
	defer cancel()
	opening := []byte(initialize.body)
	if _, err := front.exchange(limit, messageOf(opening), opening, ""); err != nil && ctx.Err() == nil {
		why := reason(err)
		if limit.Err() != nil {
			why = fmt.Sprintf("nothing came within %s (--ready-timeout)", plan.readyTimeout)
		}
		return &notReadyError{slow: limit.Err() != nil, reason: fmt.Sprintf("the bridge %q did not respond to initialize on its stdin: %s%s", plan.mcpStdio, why, log.tail())}
	}
	front.forget() // what it caches is older than the methods that the run adds to the site
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the bridge of --mcp-stdio: %w", err)
	}
	server := &http.Server{Handler: front, ReadHeaderTimeout: readyRequest}
	go server.Serve(listener)                                          //nolint:errcheck // it ends with the stage
	s.stops = append(s.stops, front.forget, func() { server.Close() }) //nolint:errcheck // nobody waits for it
	s.target.URL = "http://" + listener.Addr().String()
	return nil
}

// stdioFront serves a bridge on stdin and stdout as Streamable HTTP. For each revision that a client opens a session with it
// starts the bridge once, and all such sessions are one to it: some programs take seconds to start. Messages pass as they are,
// one at a time.
type stdioFront struct {
	start  func(context.Context) (io.ReadWriteCloser, error)
	mu     sync.Mutex
	spoken map[string]*spoken // by the revision asked for; "": without a session
	byID   map[string]string  // revision asked for, by session
}

// spoken is one process.
type spoken struct {
	turn   chan struct{} // held by the exchange under way
	conn   io.ReadWriteCloser
	lines  chan []byte
	opened json.RawMessage // the response to its initialize
}

// stdioMessage is what the front reads of a message.
type stdioMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"params"`
}

// messageOf reads a message. What is none is for the bridge to refuse.
func messageOf(body []byte) (m stdioMessage) {
	_ = json.Unmarshal(body, &m)
	return m
}

func (f *stdioFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	f.mu.Lock()
	revision, known := f.byID[id]
	if r.Method == http.MethodDelete {
		delete(f.byID, id)
	}
	f.mu.Unlock()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, client.MaxResponse))
	switch {
	case r.URL.Path != check.MCPPath || id != "" && !known:
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case err != nil:
		http.Error(w, "the message cannot be read", http.StatusBadRequest)
		return
	}
	m := messageOf(body)
	response, err := f.exchange(r.Context(), m, body, revision)
	if err != nil {
		http.Error(w, "the bridge on stdin and stdout: "+reason(err), http.StatusBadGateway)
		return
	}
	if response == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "initialize" {
		id := rand.Text()
		f.mu.Lock()
		if f.byID == nil {
			f.byID = map[string]string{}
		}
		f.byID[id] = m.Params.ProtocolVersion
		f.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(response) //nolint:errcheck // the run has gone
}

// exchange sends a message to the process of a session's revision, or the one that it asks for, and gives the response; nil for
// a notification. A process that ends, or that is still busy with a request which nobody waits for any more, is replaced.
func (f *stdioFront) exchange(ctx context.Context, m stdioMessage, body []byte, revision string) ([]byte, error) {
	if m.Method == "initialize" {
		revision = m.Params.ProtocolVersion
	}
	p, err := f.process(revision)
	if err != nil {
		return nil, err
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m.Method == "initialize" && p.opened != nil {
		return withID(p.opened, m.ID)
	}
	if m.Method == "notifications/initialized" && p.opened == nil {
		return nil, nil
	}
	response, err := p.ask(ctx, m, body)
	if err != nil {
		f.mu.Lock()
		if f.spoken[revision] == p {
			delete(f.spoken, revision)
			maps.DeleteFunc(f.byID, func(_, of string) bool { return of == revision }) // its sessions have ended with it
		}
		f.mu.Unlock()
		go p.conn.Close() //nolint:errcheck // it is given up
		return nil, err
	}
	if m.Method == "initialize" {
		p.opened = response
	}
	return response, nil
}

// forget ends all processes: the next message starts another.
func (f *stdioFront) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.spoken {
		go p.conn.Close() //nolint:errcheck // it is given up
	}
	clear(f.spoken)
}

func (f *stdioFront) process(revision string) (*spoken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.spoken[revision]; p != nil {
		return p, nil
	}
	conn, err := f.start(context.Background()) // the group ends it
	if err != nil {
		return nil, err
	}
	p := &spoken{turn: make(chan struct{}, 1), conn: conn, lines: make(chan []byte, 64)}
	go func() {
		defer close(p.lines)
		scan := bufio.NewScanner(conn)
		scan.Buffer(nil, client.MaxResponse)
		for scan.Scan() {
			p.lines <- bytes.Clone(scan.Bytes())
		}
	}()
	f.spoken[revision] = p
	return p, nil
}

// ask writes a message and reads up to its response. To what the bridge asks meanwhile it responds as a client without
// capabilities does.
func (p *spoken) ask(ctx context.Context, m stdioMessage, body []byte) ([]byte, error) {
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return nil, errors.New("a message that is no JSON has no place on stdin")
	}
	line.WriteByte('\n')
	if _, err := p.conn.Write(line.Bytes()); err != nil {
		return nil, errors.New("it ended, or closed its stdin")
	}
	if m.ID == nil || string(m.ID) == "null" {
		return nil, nil
	}
	for {
		select {
		case text, open := <-p.lines:
			var got stdioMessage
			switch {
			case !open:
				return nil, errors.New("it ended")
			case json.Unmarshal(text, &got) != nil:
				continue // mcp/stdio tests what else is on stdout
			case got.Method != "" && got.ID != nil:
				_, _ = p.conn.Write(append(client.Encode(client.Answer(got.ID, got.Method)), '\n')) // a process that has ended shows at the next line
			case got.Method == "" && sameJSON(got.ID, m.ID):
				return text, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Minute):
			return nil, errors.New("no response within a minute")
		}
	}
}

// sameJSON reports whether two JSON texts have the same value: a program may escape characters that another writes as they are.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := exact.Parse(a)
	y, errY := exact.Parse(b)
	return errX == nil && errY == nil && exact.Equal(x, y)
}

// withID is a response with another id.
func withID(response, id json.RawMessage) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(response, &members); err != nil {
		return nil, fmt.Errorf("read the response to initialize: %w", err)
	}
	members["id"] = id
	return json.Marshal(members)
}
