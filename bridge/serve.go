package bridge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/connections"
)

// shutdownTime is how long requests under way may take to end when the bridge shuts down.
const shutdownTime = 10 * time.Second

// maxStreams is how many requests may be under way on one connection of HTTP/2.
const maxStreams = 64

// Server gives an http.Server for the handler with the limits of the options: on what comes in, and how slowly. A body
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
			Exempt: func(path string) bool { return path == "/healthz" || path == "/readyz" },
		},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: o.HeaderTimeout,
		IdleTimeout:       2 * time.Minute,
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

// Serve responses requests on l with a server from Options.Server until ctx ends; requests under way are then completed.
func Serve(ctx context.Context, s *http.Server, l net.Listener) error {
	l = keepSpares(l)
	if h, ok := s.Handler.(*connections.Handler); ok {
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
	last, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := s.Shutdown(last); err != nil {
		s.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the bridge stopped serving: %w", err)
	}
	return nil
}
