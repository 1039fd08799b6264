package must

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// Certificate writes a certificate for servers and clients of this machine, and its key. An issuer signs it; nil: it signs itself.
func Certificate(t tester, certFile, keyFile string, issuer *tls.Certificate) *tls.Certificate {
	t.Helper()
	key := Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: certFile}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: issuer == nil, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, signer := template, crypto.PrivateKey(key)
	if issuer != nil {
		parent, signer = issuer.Leaf, issuer.PrivateKey
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: Get(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer))(t)})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: Get(x509.MarshalPKCS8PrivateKey(key))(t)})
	Do(t, os.WriteFile(certFile, public, 0o600))
	Do(t, os.WriteFile(keyFile, private, 0o600))
	pair := Get(tls.X509KeyPair(public, private))(t)
	return &pair
}
