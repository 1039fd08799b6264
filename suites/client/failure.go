package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
)

// ErrTimeout is why a request that took too long has no response.
var ErrTimeout = errors.New("no response within the time-out")

// NoResponse says, in words for the bridge's author, why a request got no response.
func NoResponse(ctx context.Context, err error) error {
	var (
		dns      *net.DNSError
		host     x509.HostnameError
		stranger x509.UnknownAuthorityError
		cert     *tls.CertificateVerificationError
		rec      tls.RecordHeaderError
		op       *net.OpError
	)
	switch {
	case context.Cause(ctx) == ErrTimeout, errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case errors.As(err, &dns):
		return fmt.Errorf("no such host: %s", dns.Name)
	case errors.As(err, &host):
		return fmt.Errorf("the TLS certificate is for %s, and not for %s: check the name in the URL", hostsOf(host.Certificate), host.Host)
	case errors.As(err, &stranger):
		return fmt.Errorf("the TLS certificate is not trusted: it is of no authority that this machine knows (tls.ca in the configuration names a file of certificates to trust)")
	case errors.As(err, &cert):
		return fmt.Errorf("the TLS certificate is not trusted: %w (tls.ca in the configuration names a file of certificates to trust)", cert.Err)
	case errors.As(err, &rec):
		return fmt.Errorf("TLS failed: the server does not speak TLS on this port")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the response was cut off")
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the connection was closed without a response")
	case errors.As(err, &op) && op.Op == "dial":
		if op.Addr == nil {
			return fmt.Errorf("cannot connect: %w", op.Err)
		}
		return fmt.Errorf("cannot connect to %s: %w", op.Addr, op.Err)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return fmt.Errorf("cannot connect to the proxy: %w", op.Err)
	case errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate"):
		return fmt.Errorf("the server does not accept our TLS certificate, or requires one: %w (tls.cert and tls.key in the configuration)", op.Err)
	case strings.Contains(err.Error(), "Proxy Authentication Required"):
		return fmt.Errorf("the proxy requires a user and a password: HTTP_PROXY or HTTPS_PROXY in the environment may hold them")
	case strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Errorf("what responds there does not speak HTTP: %w", err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("the server speaks plain HTTP on this port: use http://")
	}
	return err
}

// hostsOf lists some of the hosts that a certificate is for.
func hostsOf(cert *x509.Certificate) string {
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return "no host by name"
	case len(names) > 5:
		names = append(names[:5], "…")
	}
	return strings.Join(names, ", ")
}
