package keys_test

import (
	"bytes"
	"testing"

	"github.com/bridgecheck/bridgecheck/bridge/keys"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

const (
	first  = "0123456789abcdef0123456789abcdef"
	second = "another key of more than 32 characters"
)

func ring(t *testing.T, purpose string, secrets ...string) *keys.Ring {
	t.Helper()
	return must.Get(keys.New(secrets, purpose))(t)
}

func TestWhoOpensWhatIsSealed(t *testing.T) {
	sealed := ring(t, "test", first).Seal([]byte("text"), []byte("bound"))
	must.Expect(t, len(sealed) == len("text")+keys.Overhead, "%d bytes more", len(sealed)-len("text"))
	for name, c := range map[string]struct {
		ring  *keys.Ring
		bound string
		want  bool
	}{
		"the same":        {ring(t, "test", first), "bound", true},
		"after rotation":  {ring(t, "test", second, first), "bound", true},
		"another key":     {ring(t, "test", second), "bound", false},
		"another purpose": {ring(t, "other", first), "bound", false},
		"another bound":   {ring(t, "test", first), "other", false},
		"no key":          {ring(t, "test"), "bound", false},
	} {
		text, ok := c.ring.Open(sealed, []byte(c.bound))
		must.Expect(t, ok == c.want && (!ok || string(text) == "text"), "%s: opened %v, %q", name, ok, text)
	}
}

func TestDigests(t *testing.T) {
	a := ring(t, "test", first, second).Digest([]byte("a"))
	if !bytes.Equal(a, ring(t, "test", first).Digest([]byte("a"))) || bytes.Equal(a, ring(t, "test", first).Digest([]byte("b"))) ||
		bytes.Equal(a, ring(t, "other", first).Digest([]byte("a"))) {
		t.Error("a digest names one text, by the first key, for one purpose")
	}
}

func TestShortSecrets(t *testing.T) {
	must.Refuse(keys.New([]string{first, "short"}, "test"))(t, "", "a secret of 5 characters is taken")
}
