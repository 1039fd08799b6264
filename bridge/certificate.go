package bridge

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is how often the files of a certificate are looked at, by the machine's clock.
const certificateCheck = time.Second

// certificate is the bridge's own, read again when its files change: they are renewed while the bridge runs. A pair that
// cannot be read, or that does not belong together yet, leaves the one before in force.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	version [2]fileVersion
	checked time.Time
}

// fileVersion changes when a file does.
type fileVersion struct {
	modified time.Time
	size     int64
}

// loadCertificate reads a pair of files.
func loadCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log, version: [2]fileVersion{versionOf(cert), versionOf(key)}, checked: time.Now()}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls_cert, tls_key: %w", err)
	}
	c.pair = &pair
	return c, nil
}

func versionOf(path string) fileVersion {
	info, err := os.Stat(path)
	if err != nil {
		return fileVersion{}
	}
	return fileVersion{info.ModTime(), info.Size()}
}

// get gives the pair for a new connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < certificateCheck {
		return c.pair, nil
	}
	c.checked = time.Now()
	now := [2]fileVersion{versionOf(c.cert), versionOf(c.key)}
	if now == c.version {
		return c.pair, nil
	}
	c.version = now
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.log.Error("the certificate stays as it was", "error", err)
		return c.pair, nil
	}
	c.pair = &pair
	c.log.Info("the certificate was read again")
	return c.pair, nil
}
