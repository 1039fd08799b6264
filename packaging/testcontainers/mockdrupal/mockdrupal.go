// Package mockdrupal starts the mock Drupal of bridgecheck in a container, for Go tests that use Testcontainers. It knows
// the image's command line and its port; the site, its journal and its faults are the mock's own, see docs/mock.md.
//
// No image is published yet: build it from the Dockerfile of bridgecheck, and name it.
package mockdrupal

import (
	"context"
	"fmt"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	port     = "8080/tcp"
	siteFile = "/site.yaml"
)

// Container is a mock Drupal that runs.
type Container struct {
	testcontainers.Container
}

// Run starts a mock of the built-in site `default` from an image of bridgecheck and waits until it accepts connections,
// without a request, so that its journal is empty. Options of Testcontainers change it; flags of `bridgecheck mock` are
// given by testcontainers.WithCmdArgs. On an error the container may exist, and is then returned to be terminated.
func Run(ctx context.Context, image string, opts ...testcontainers.ContainerCustomizer) (*Container, error) {
	all := append([]testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(port),
		testcontainers.WithCmd("mock", "--listen", "0.0.0.0:8080"),
		testcontainers.WithWaitStrategy(wait.ForAll(
			wait.ForLog("listening on http://"),
			wait.ForListeningPort(port).SkipInternalCheck(), // needs a shell
		)),
	}, opts...)
	started, err := testcontainers.Run(ctx, image, all...)
	var c *Container
	if started != nil {
		c = &Container{started}
	}
	if err != nil {
		return c, fmt.Errorf("run the mock Drupal: %w", err)
	}
	return c, nil
}

// WithSite serves the site of a file on this machine, see docs/site-files.md.
func WithSite(path string) testcontainers.CustomizeRequestOption {
	return func(req *testcontainers.GenericContainerRequest) error {
		file := testcontainers.ContainerFile{HostFilePath: path, ContainerFilePath: siteFile, FileMode: 0o644}
		if err := testcontainers.WithFiles(file)(req); err != nil {
			return err
		}
		return testcontainers.WithCmdArgs("--site", siteFile)(req)
	}
}

// WithControl serves the control plane below /-/mock/ for callers that send `Authorization: Bearer` with the token.
func WithControl(token string) testcontainers.CustomizeRequestOption {
	return testcontainers.WithEnv(map[string]string{"BRIDGECHECK_CONTROL_TOKEN": token})
}

// URL returns the site's address for programs on this machine, http://HOST:PORT.
func (c *Container) URL(ctx context.Context) (string, error) {
	return c.PortEndpoint(ctx, port, "http")
}
