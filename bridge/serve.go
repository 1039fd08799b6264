package bridge

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/connections"
	"github.com/bridgecheck/bridgecheck/bridge/httpapi"
)

// shutdownTime is how long requests under way may take to end when the bridge shuts down.
const shutdownTime = 10 * time.Second

// maxStreams is how many requests may be under way on one connection of HTTP/2.
const maxStreams = 64

// idleTime is how long a connection may be idle: longer than the proxies keep theirs (nginx, Varnish and Apache 60 s, Caddy
// 2 min), or they would send a request on a connection that the bridge is closing.
const idleTime = 3 * time.Minute

// Server returns an http.Server for the handler with the limits of the options: on what comes in, and how slowly. A body
// has a limit of its own in the handler, for a call may take longer than its body.
func (o Options) Server(handler http.Handler) (*http.Server, error) {
	o, _, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &http.Server{
		Handler: &connections.Handler{
			Next:   handler,
			Limits: connections.Limits{Total: o.MaxConnections, PerClient: o.MaxConnectionsPerClient, WriteTime: o.WriteTimeout},
			Exempt: httpapi.IsProbe,
		},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: o.HeaderTimeout,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       markConnection,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	if b, ok := handler.(*Bridge); ok {
		s.RegisterOnShutdown(b.endStreams) // they do not end by themselves
	}
	if o.TLSCert != "" {
		own, err := loadCertificate(o.TLSCert, o.TLSKey, o.Logger)
		if err != nil {
			return nil, err
		}
		s.TLSConfig = &tls.Config{GetCertificate: own.get, MinVersion: tls.VersionTLS12}
	}
	return s, nil
}

// markConnection marks what kind of connection a request comes on: one beyond the bounds, or one on a spare descriptor.
func markConnection(ctx context.Context, c net.Conn) context.Context {
	return markSpare(connections.Context(ctx, c), c)
}

// Serve serves requests on l with a server from Options.Server until ctx ends. Then readiness fails, drain_pause passes in
// which requests are still served, no more connections are accepted, and requests under way are completed.
func Serve(ctx context.Context, s *http.Server, l net.Listener) error {
	b := bridgeOf(s)
	if b != nil && s.TLSConfig == nil {
		b.warnPlain(l.Addr())
	}
	patient, handler := &patientListener{}, s.Handler
	if tcp, ok := l.(*net.TCPListener); ok && b != nil {
		defer tcp.Close() // where nothing has accepted
		patient.TCPListener, l = tcp, patient
		patient.next, s.ConnState = s.ConnState, patient.note
		patient.serves(s)
	}
	l = keepSpares(l)
	if h, ok := handler.(*connections.Handler); ok {
		l = h.Listener(l)
	}
	ended := make(chan error, 1)
	go func() {
		if s.TLSConfig != nil {
			ended <- s.ServeTLS(l, "", "")
		} else {
			ended <- s.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("the bridge stopped serving: %w", err)
	case <-ctx.Done():
	}
	if b != nil {
		select {
		case err := <-ended:
			return fmt.Errorf("the bridge stopped serving: %w", err)
		case <-b.drain():
		}
	}
	if patient.TCPListener != nil {
		patient.Close()
		ended <- <-ended // the last connection is accepted
		patient.awaitRead()
	}
	last, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := s.Shutdown(last); err != nil {
		s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("the bridge stopped serving: %w", err)
	}
	return nil
}

// patientListener closes when nobody waits to be accepted: the system resets a connection that waits, and http.Server closes one
// whose request it reads when it shuts down. A proxy may have sent a POST there, which it does not repeat.
type patientListener struct {
	*net.TCPListener
	closing atomic.Bool
	unread  sync.Map                       // net.Conn: those of which no request has been read
	next    func(net.Conn, http.ConnState) // the ConnState that the server had; nil: none
}

// note is the server's ConnState.
func (l *patientListener) note(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		l.unread.Store(c, true)
	case http.StateIdle, http.StateClosed, http.StateHijacked:
		l.unread.Delete(c)
	}
	if l.next != nil {
		l.next(c, state)
	}
}

type connectionKey struct{}

// serves notes that the first request of a connection is being served when its handler begins: on a busy machine that is long after
// the server has read it, and it drops a request between the two when it shuts down.
func (l *patientListener) serves(s *http.Server) {
	mark, handler := s.ConnContext, s.Handler
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if mark != nil {
			ctx = mark(ctx, c)
		}
		return context.WithValue(ctx, connectionKey{}, c)
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.unread.Delete(r.Context().Value(connectionKey{}))
		handler.ServeHTTP(w, r)
	})
}

// awaitRead waits until the first request of each connection is being served, for a second at most.
func (l *patientListener) awaitRead() {
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		unread := false
		l.unread.Range(func(any, any) bool { unread = true; return false })
		if !unread {
			return
		}
	}
}

// Close makes Accept close the listener.
func (l *patientListener) Close() error {
	if l.closing.Swap(true) {
		return nil
	}
	dropNew(l.TCPListener)
	return l.SetDeadline(time.Now())
}

// How long Accept looks whether somebody waits, and when it closes whoever does.
const (
	lastLook  = time.Millisecond
	lastLooks = 200
)

func (l *patientListener) Accept() (net.Conn, error) {
	for n := 0; ; n++ {
		began := time.Now()
		c, err := l.TCPListener.Accept()
		if err == nil || !l.closing.Load() {
			return c, err
		}
		if n > 0 && time.Since(began) < 3*lastLook || n == lastLooks { // else others had the processor, while somebody may have come
			l.TCPListener.Close()
			return nil, net.ErrClosed
		}
		if err := l.SetDeadline(time.Now().Add(lastLook)); err != nil {
			return nil, err
		}
	}
}

// ServeAdmin serves the operator's endpoints of a bridge on l until stop is called. Its connections have bounds of their own.
func (o Options) ServeAdmin(b *Bridge, l net.Listener) (stop func(), err error) {
	o.MaxConnections, o.MaxConnectionsPerClient = adminConnections, adminConnections/2
	o.TLSCert, o.TLSKey = "", "" // its clients are monitors and orchestrators
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s, err := o.Server(b.Operation())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := Serve(ctx, s, l); err != nil {
			o.Logger.Error("admin_listen", "error", err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}

// adminConnections bounds the connections of admin_listen.
const adminConnections = 128

// bridgeOf is the bridge that a server of Options.Server serves; nil: something else.
func bridgeOf(s *http.Server) *Bridge {
	h, _ := s.Handler.(*connections.Handler)
	if h == nil {
		return nil
	}
	b, _ := h.Next.(*Bridge)
	return b
}

// drain makes readiness fail. The channel delivers when the pause is over.
func (b *Bridge) drain() <-chan time.Time {
	b.kept.draining.Store(true)
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.core.pause > 0 {
		b.core.log.Info("the bridge drains before it ends", "drain_pause", b.core.pause)
	}
	return time.After(b.core.pause)
}

// warnPlain warns where credentials cross a network in the clear.
func (b *Bridge) warnPlain(at net.Addr) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if tcp, ok := at.(*net.TCPAddr); !ok || tcp.IP.IsLoopback() || b.core.plainHTTP {
		return
	}
	b.core.log.Warn("PLAIN HTTP beyond this machine: passwords and tokens of callers cross the network unencrypted; set tls_cert and tls_key, or "+
		"listen on 127.0.0.1 behind a proxy, or, if a proxy on another machine encrypts, set plain_http", "listen", at.String())
}
