package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/shlex"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/suites"
	"github.com/bridgecheck/bridgecheck/suites/harness"
)

// What a bridge of --exec is told to keep, unless flags or configuration say otherwise.
const (
	execDiscoveryTTL    = time.Second
	execUpstreamTimeout = 2 * time.Second
)

// How a bridge of --exec is awaited and ended.
const (
	readyPoll      = 20 * time.Millisecond
	readyRequest   = 5 * time.Second        // one request while it gets ready
	stopGrace      = 5 * time.Second        // between SIGTERM and SIGKILL
	interruptGrace = 500 * time.Millisecond // the same after Ctrl-C, when somebody waits
	logTail        = 10                     // lines of its log that a failure to start shows
)

// process is a bridge that we started, with all that it started itself.
type process struct {
	command string
	cmd     *exec.Cmd
	logPath string
	exited  chan struct{} // closed when it has ended by itself or by stop
}

// execute starts the mock and the bridge of --exec, and waits until that is ready.
func (s *stage) execute(ctx context.Context, plan *plan, o suites.Options) error {
	var drupal string
	var err error
	if plan.proxy.listen != "" {
		drupal, err = s.record(ctx, plan.proxy)
	} else {
		drupal, err = s.mock(cmp.Or(plan.mockListen, "127.0.0.1:0"), o)
	}
	if err != nil {
		return err
	}
	listen, err := freeAddress()
	if err != nil {
		return err
	}
	s.discoveryTTL = cmp.Or(o.DiscoveryTTL, execDiscoveryTTL)
	s.upstreamTimeout = cmp.Or(o.UpstreamTimeout, execUpstreamTimeout)
	ttl := seconds(s.discoveryTTL)
	env := []string{"DRUPAL_URL=" + drupal, "BRIDGE_LISTEN=" + listen, "BRIDGE_DISCOVERY_TTL=" + ttl, "BRIDGE_PERMISSION_TTL=" + ttl,
		"BRIDGE_UPSTREAM_TIMEOUT=" + seconds(s.upstreamTimeout), fmt.Sprintf("BRIDGE_PAGE_SIZE=%d", o.PageSize)}
	if s.drupal != nil {
		env = append(env, "DRUPAL_USER=service", "DRUPAL_PASSWORD=service-pass")
	}
	log := bridgeLog{filepath.Join(plan.reportDir, "bridge.log"), o.Redactor()}
	if err := log.clear(); err != nil {
		return err
	}
	if plan.mcpStdio != "" {
		if s.stdio, err = speak(plan.mcpStdio, log, env); err != nil {
			return err
		}
	}
	p, err := start(plan.exec, log, env...)
	if err != nil {
		return err
	}
	s.bridge = p
	s.stops = append(s.stops, func() {
		grace := stopGrace
		if ctx.Err() != nil {
			grace = interruptGrace
		}
		p.stop(grace)
	})
	s.target.URL = "http://" + listen
	return p.awaitReady(ctx, s.target.URL, plan.readyTimeout)
}

// seconds writes d as the whole seconds, at least one, that the bridge's environment holds.
func seconds(d time.Duration) string { return fmt.Sprint(max(1, int(d/time.Second))) }

// freeAddress finds a port that nobody listens on. The bridge may lose it to another process before it listens there;
// the system hands ports out in turn, so that this does not happen in practice.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// start runs command as the leader of a process group of its own, with its output in a log.
func start(command string, log bridgeLog, env ...string) (*process, error) {
	words, err := shlex.Split(command)
	if err != nil {
		return nil, usagef("--exec %q cannot be split into words: %v", command, err)
	}
	if len(words) == 0 {
		return nil, usagef("--exec %q holds no command", command)
	}
	out, err := log.open()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = stopGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		out.Close()
		return nil, &notReadyError{fmt.Sprintf("the bridge %q cannot be started: %s", command, reason(err))}
	}
	p := &process{command: command, cmd: cmd, logPath: log.path, exited: make(chan struct{})}
	go func() {
		cmd.Wait() // its outcome is in cmd.ProcessState
		out.Close()
		close(p.exited)
	}()
	return p, nil
}

// awaitReady waits until the bridge answers a list request, whatever its status. It ends early, without an error, when
// ctx does: the run that follows tells that it was cut short.
func (p *process) awaitReady(ctx context.Context, url string, patience time.Duration) error {
	client := &http.Client{Timeout: readyRequest, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if answers(limit, client, url+harness.ListPath) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return &notReadyError{fmt.Sprintf("the bridge %q ended before it was ready: %s%s", p.command, p.cmd.ProcessState, p.tail())}
		case <-limit.Done():
			if ctx.Err() != nil {
				return nil
			}
			return &notReadyError{fmt.Sprintf("the bridge %q did not answer GET %s at %s within %s (--ready-timeout)%s", p.command, harness.ListPath, url, patience, p.tail())}
		}
	}
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

// tail shows the end of the log, with its stack traces shortened so that the error above them is in sight.
func (p *process) tail() string {
	data, err := os.ReadFile(p.logPath)
	lines := terminal.Tail(string(data), logTail)
	if err != nil || len(lines) == 0 {
		return "; it wrote nothing to its log"
	}
	return fmt.Sprintf("; the end of %s:\n  %s", p.logPath, strings.Join(lines, "\n  "))
}

// ended tells how the process ended by itself; "" while it runs.
func (p *process) ended() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// stop ends the process and all that it started: SIGTERM, and SIGKILL after the grace.
func (p *process) stop(grace time.Duration) {
	group := -p.cmd.Process.Pid
	syscall.Kill(group, syscall.SIGTERM)
	deadline := time.After(grace)
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for syscall.Kill(group, 0) == nil { // somebody of the group is left
		select {
		case <-tick.C:
			continue
		case <-deadline:
		}
		syscall.Kill(group, syscall.SIGKILL)
		break
	}
	<-p.exited
}

// notReadyError tells that the bridge of --exec never answered.
type notReadyError struct{ reason string }

func (e *notReadyError) Error() string { return e.reason }
