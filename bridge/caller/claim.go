package caller

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"strings"

	"github.com/bridgecheck/bridgecheck/bridge/fair"
)

// Claim is the identity that a request claims, for the log of refusals. It holds no secret.
type Claim struct {
	Address netip.Addr
	Network [32]byte // what one client has for itself
	User    string   // an account that the site has accepted before, else "unknown:" and a digest; "" without credentials
}

// claimKey makes digests useless outside this process: people type passwords where the name belongs, and a plain digest of a
// password can be guessed.
var claimKey = []byte(rand.Text())

// Claim reads a request that was refused, without verifying anything.
func (cs Callers) Claim(r *http.Request) Claim {
	c := Claim{Address: cs.Proxies.client(r)}
	c.Network = fair.Network(c.Address)
	given := strings.Join(append(r.Header.Values("Authorization"), r.Header.Values("Cookie")...), "\x00")
	if given == "" {
		return c
	}
	if _, account, ok := authorization(r.Header.Get("Authorization")); ok && account != "" {
		if cs.Attempts != nil && cs.Attempts.KnownAccount(account) {
			c.User = account
			return c
		}
		given = account
	}
	mac := hmac.New(sha256.New, claimKey)
	mac.Write([]byte(given)) //nolint:errcheck // a hash never fails
	c.User = "unknown:" + hex.EncodeToString(mac.Sum(nil)[:6])
	return c
}
