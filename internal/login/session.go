package login

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// Session is the login of one caller: its token is kept in a file that nobody else may read, and renewed while it is used.
type Session struct {
	store  string
	caller string
	warn   func(error)

	mu      sync.Mutex
	flow    *Flow
	token   Token
	renewAt time.Time // zero: never
}

// StorePath is the file with the tokens of this user. It is no keyring: the library (go-keyring, with D-Bus) would add 0.4 MB, more
// than is left to the program of 32 MiB.
func StorePath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the directory for tokens: %w", err)
	}
	return filepath.Join(dir, "bridgecheck", "logins.json"), nil
}

// Open takes the login of a caller from a file, where it is there and the bridge still accepts it, renews it, or asks a
// person to log in. Warn receives what keeps a token from being renewed or written later on.
func Open(ctx context.Context, o Options, caller, store string, warn func(error)) (*Session, error) {
	s := &Session{store: store, caller: caller, warn: warn, flow: New(o)}
	known, err := load(store)
	if err != nil {
		return nil, err
	}
	kept, _ := known[o.Resource+" "+caller].(map[string]any)
	if s.resume(ctx, kept) {
		return s, nil
	}
	s.flow = New(o)
	token, err := s.flow.LogIn(ctx)
	if err != nil {
		return nil, err
	}
	return s, s.set(token)
}

// resume goes on with a login that was kept: at the same authorization server, as the same client.
func (s *Session) resume(ctx context.Context, kept map[string]any) bool {
	f := s.flow
	if kept == nil || f.ClientID != "" && f.ClientID != text(kept["client_id"]) || f.discover(ctx) != nil || text(kept["issuer"]) != f.issuer {
		return false
	}
	f.id, f.secret, f.inHeader = text(kept["client_id"]), text(kept["client_secret"]), kept["basic"] == true
	t := Token{Access: text(kept["access_token"]), Refresh: text(kept["refresh_token"])}
	f.secrets.Add(f.secret, t.Access, t.Refresh)
	expires, err := time.Parse(time.RFC3339, text(kept["expires"]))
	if err == nil {
		t.Expires = expires
	}
	if err != nil || time.Until(t.Expires) > time.Minute {
		if a := f.show(ctx, t.Access); plain(t.Access) && a.Status >= 200 && a.Status <= 299 {
			s.hold(t)
			return true
		}
	}
	t, err = f.Renew(ctx, t)
	return err == nil && s.set(t) == nil
}

// hold takes a token into use. It is renewed a minute before it expires, or when two thirds of a shorter life are over.
func (s *Session) hold(t Token) {
	s.token, s.renewAt = t, time.Time{}
	if !t.Expires.IsZero() && t.Refresh != "" {
		s.renewAt = t.Expires.Add(-min(time.Minute, time.Until(t.Expires)/3))
	}
}

// set holds a token and keeps it in the file.
func (s *Session) set(t Token) error {
	s.hold(t)
	known, err := load(s.store)
	if err != nil {
		return err
	}
	entry := map[string]any{"issuer": s.flow.issuer, "client_id": s.flow.id, "client_secret": s.flow.secret, "basic": s.flow.inHeader,
		"access_token": t.Access, "refresh_token": t.Refresh}
	if !t.Expires.IsZero() {
		entry["expires"] = t.Expires.UTC().Format(time.RFC3339)
	}
	known[s.flow.Resource+" "+s.caller] = entry
	if err := os.MkdirAll(filepath.Dir(s.store), 0o700); err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	if err := wholefile.Write(s.store, client.Encode(known), 0o600); err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	return nil
}

// Token is the one that is valid now, as far as it can be renewed.
func (s *Session) Token(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.renewAt.IsZero() || time.Now().Before(s.renewAt) {
		return s.token.Access
	}
	t, err := s.flow.Renew(ctx, s.token)
	if err != nil {
		s.renewAt = time.Time{} // once is enough: the server has refused it
		s.warn(fmt.Errorf("the token of %s is not renewed: %w", s.caller, err))
		return s.token.Access
	}
	if err := s.set(t); err != nil {
		s.warn(err)
	}
	return s.token.Access
}

// load reads the logins that were kept. A file that others may read is refused.
func load(path string) (map[string]any, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]any{}, nil
	case err != nil:
		return nil, fmt.Errorf("read the tokens: %w", err)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows": // which has no such modes
		return nil, fmt.Errorf("others may read the tokens in %s: chmod 600, or remove it and log in again", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	v, err := exact.Parse(data)
	document, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, fmt.Errorf("the tokens in %s cannot be read: remove it and log in again", path)
	}
	return document, nil
}
