package bridge

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// certificateCheck is how often the files of a certificate are looked at, by the machine's clock.
const certificateCheck = time.Second

// certificate is the bridge's own, read again when its files change: they are renewed while the bridge runs. A pair that
// cannot be read, or that does not belong together yet, leaves the one before in force.
type certificate struct {
	cert, key string
	log       *slog.Logger

	pair    atomic.Pointer[tls.Certificate]
	mu      sync.Mutex // held by the one handshake that looks at the files
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
	pair, err := readPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls_cert, tls_key: %w", err)
	}
	c.pair.Store(pair)
	return c, nil
}

// readPair reads a certificate and its key from regular files.
func readPair(cert, key string) (*tls.Certificate, error) {
	public, err := readRegular(cert)
	if err != nil {
		return nil, err
	}
	private, err := readRegular(key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(public, private)
	if err != nil { // which of the two it is, crypto/tls says in words alone
		return nil, fmt.Errorf("%s, %s: %w", cert, key, err)
	}
	return &pair, nil
}

func versionOf(path string) fileVersion {
	info, err := os.Stat(path)
	if err != nil {
		return fileVersion{}
	}
	return fileVersion{info.ModTime(), info.Size()}
}

// get returns the pair for a new connection.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if !c.mu.TryLock() { // files may be slow to read: handshakes do not wait for them
		return c.pair.Load(), nil
	}
	defer c.mu.Unlock()
	if time.Since(c.checked) < certificateCheck {
		return c.pair.Load(), nil
	}
	c.checked = time.Now()
	now := [2]fileVersion{versionOf(c.cert), versionOf(c.key)}
	if now == c.version {
		return c.pair.Load(), nil
	}
	c.version = now
	pair, err := readPair(c.cert, c.key)
	if err != nil {
		c.log.Error("the certificate stays as it was", "error", err)
		return c.pair.Load(), nil
	}
	c.pair.Store(pair)
	c.log.Info("the certificate was read again")
	return pair, nil
}
