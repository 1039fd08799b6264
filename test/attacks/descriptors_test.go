package attacks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

const descriptorsChild = "BRIDGE_ATTACK_CHILD"

// TestDescriptorsChild is the bridge that TestDescriptorsExhausted attacks, in a process of its own with few descriptors.
func TestDescriptorsChild(t *testing.T) {
	site := os.Getenv(descriptorsChild)
	must.Need(t, site != "", "TestDescriptorsExhausted starts it")
	o := bridge.Options{Drupal: site, ServingOptions: bridge.ServingOptions{HeaderTimeout: time.Minute}}
	_, server, l := newServer(t, o)
	fmt.Println("listening on", l.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	go func() { io.Copy(io.Discard, os.Stdin); cancel() }() //nolint:errcheck // it ends with the parent
	err := bridge.Serve(ctx, server, l)
	must.Expect(t, err == nil, "%v", err)
}

// descriptorsBridge starts the child and gives its address.
func descriptorsBridge(t *testing.T, site string, limit int) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" -test.run='^TestDescriptorsChild$'`, limit), os.Args[0])
	cmd.Env = append(os.Environ(), descriptorsChild+"="+site)
	in := must.Get(cmd.StdinPipe())(t)
	t.Cleanup(func() {
		in.Close()
		kill := time.AfterFunc(15*time.Second, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended by then
		defer kill.Stop()
		cmd.Wait() //nolint:errcheck // it may have been killed
	})
	return program.Listening(t, cmd)
}

// While clients hold all descriptors, probes get through: nobody restarts a bridge that is only busy. When they let go
// everything is as before.
func TestDescriptorsExhausted(t *testing.T) {
	site := newIdentitySite(t)
	address := descriptorsBridge(t, site.URL, 48)
	probe := func(path string) (int, error) {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Get("http://" + address + path)
		if err != nil {
			return 0, err
		}
		res.Body.Close()
		return res.StatusCode, nil
	}
	if status, err := probe("/readyz"); status != 200 {
		t.Fatal(status, err)
	}
	var held []net.Conn
	for range 60 { // each with a request that was served, and another one to come
		c := must.Get(net.Dial("tcp", address))(t)
		defer c.Close()
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /mcp") //nolint:errcheck // it may be turned away
		held = append(held, c)
	}
	for range 3 {
		for _, path := range []string{"/readyz", "/healthz"} {
			status, err := probe(path)
			must.Expect(t, status == 200, "%s while all descriptors are held: %d %v", path, status, err)
		}
	}
	if status, err := probe("/mcp/tools/list"); status != 503 {
		t.Errorf("a list while all descriptors are held: %d %v", status, err)
	}
	for _, c := range held {
		c.Close()
	}
	served := func() bool { status, err := probe("/mcp/tools/list"); return err == nil && status == 200 }
	must.Become(t, 10*time.Second, served, "no list is served when they let go")
}
