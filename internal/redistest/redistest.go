//go:build unix

// Package redistest starts redis-server for tests. Where it is not installed the test is skipped, and says so.
package redistest

import (
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// Server is a redis-server of a test. It keeps nothing on disk.
type Server struct {
	Address string // redis://127.0.0.1:PORT

	t    testing.TB
	port string
	cmd  *exec.Cmd
}

// Start starts a server on a free port. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("NOT TESTED: redis-server is not installed (apt-get install redis-server): nothing that replicas share was tested")
	}
	address := program.Address(t)
	_, port, _ := net.SplitHostPort(address)
	s := &Server{Address: "redis://" + address, t: t, port: port}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts the server again, empty, on the same port, after Kill.
func (s *Server) Restart() {
	s.t.Helper()
	s.cmd = exec.Command("redis-server", "--port", s.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.t.TempDir())
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	must.Become(s.t, 10*time.Second, func() bool { return freeport.Listens("127.0.0.1:" + s.port) }, "redis-server does not listen")
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill() //nolint:errcheck // it has ended
	s.cmd.Wait()         //nolint:errcheck // it was killed
	s.cmd = nil
}

// Pause stops the server without closing its connections, until Resume.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}
