package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/shlex"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/suites/check"
)

// The settings of a bridge of --exec, unless flags or the configuration give others.
const (
	execDiscoveryTTL    = time.Second
	execUpstreamTimeout = 2 * time.Second
)

// How the run waits for a bridge of --exec, and ends it.
const (
	readyTime      = 30 * time.Second // until its first response, unless --ready-timeout says otherwise
	readyPoll      = 20 * time.Millisecond
	readyRequest   = 5 * time.Second        // one request while it gets ready
	stopGrace      = 5 * time.Second        // between SIGTERM and SIGKILL
	interruptGrace = 500 * time.Millisecond // the same after Ctrl-C, when the user waits
	drainTime      = 500 * time.Millisecond // for its output after it has ended: a child of it may hold that open
)

// process is a bridge that we started.
type process struct {
	command string
	cmd     *exec.Cmd
	tree    *processtree.Tree
	log     *bridgeLog
	exited  chan struct{} // closed when it has ended and its output is in the log
}

// execute starts the mock and the bridge of --exec, and waits until that is ready.
func (s *stage) execute(ctx context.Context, plan *plan, o engine.Options) error {
	var drupal string
	var err error
	if plan.proxy.site != nil {
		drupal, err = s.real(ctx, plan.proxy)
	} else {
		drupal, err = s.mock(cmp.Or(plan.mockListen, "127.0.0.1:0"), o)
	}
	if err != nil {
		return err
	}
	listen, release, err := freeport.Address()
	if err != nil {
		return err
	}
	s.stops = append(s.stops, release)
	s.discoveryTTL = cmp.Or(o.Bridge.DiscoveryTTL, execDiscoveryTTL)
	s.upstreamTimeout = cmp.Or(o.Bridge.UpstreamTimeout, execUpstreamTimeout)
	ttl := strconv.FormatFloat(s.discoveryTTL.Seconds(), 'f', -1, 64)
	env := []string{"DRUPAL_URL=" + drupal, "BRIDGE_LISTEN=" + listen, "BRIDGE_DISCOVERY_TTL=" + ttl, "BRIDGE_PERMISSION_TTL=" + ttl,
		fmt.Sprintf("BRIDGE_UPSTREAM_TIMEOUT=%d", int(s.upstreamTimeout.Seconds())), fmt.Sprintf("BRIDGE_PAGE_SIZE=%d", o.Bridge.PageSize)}
	if s.drupal != nil || s.control != nil {
		env = append(env, "DRUPAL_USER=service", "DRUPAL_PASSWORD=service-pass")
		env = append(env, "BRIDGE_AUTH_ADDRESS_FAILURES=100000", "BRIDGE_AUTH_TOTAL_FAILURES=100000") // the run sends many wrong credentials
	}
	if s.authority != nil {
		env = append(env, "BRIDGE_OAUTH_ISSUER="+s.authority.URL, "BRIDGE_OAUTH_RESOURCE=http://"+listen+check.MCPPath)
		exchange := slices.Contains(o.Capabilities, check.TokenExchange)
		if exchange {
			env = append(env, "BRIDGE_OAUTH_EXCHANGE="+drupal)
		}
		if exchange || slices.Contains(o.Capabilities, check.TokenIntrospection) {
			env = append(env, "BRIDGE_OAUTH_CLIENT="+authserver.Client, "BRIDGE_OAUTH_CLIENT_SECRET="+authserver.ClientSecret)
		}
	}
	log, err := plan.openLog(o)
	if err != nil {
		return err
	}
	group := plan.group
	env = bridgeEnvironment(plan.env, append(env, replicaEnvironment(plan.replicas)...)...)
	if plan.mcpStdio != "" {
		if s.stdio, err = speak(plan.mcpStdio, group, log, env); err != nil {
			return err
		}
	}
	p, err := start(plan.exec, group, log, env)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, func() { p.tree.Stop(grace(ctx)) })
	s.bridge = p
	s.target.URL = "http://" + listen
	if err := p.awaitReady(ctx, s.target.URL, plan.readyTimeout); err != nil {
		return err
	}
	for range plan.replicas - 1 {
		if err := s.replicate(ctx, plan, group, log, env); err != nil {
			return err
		}
	}
	return nil
}

// replicate starts a replica of the bridge of --exec, which the checks may end and start again.
func (s *stage) replicate(ctx context.Context, plan *plan, group *processtree.Group, log *bridgeLog, env []string) error {
	listen, release, err := freeport.Address()
	if err != nil {
		return err
	}
	s.stops = append(s.stops, release)
	env = append(slices.Clone(env), "BRIDGE_LISTEN="+listen)
	r := check.Replica{URL: "http://" + listen}
	var p *process
	r.Start = func(ctx context.Context) (err error) {
		if p, err = start(plan.exec, group, log, env); err != nil {
			return err
		}
		return p.awaitReady(ctx, r.URL, plan.readyTimeout)
	}
	r.Kill = func() error {
		p.tree.Kill()
		<-p.exited
		p.tree.Stop(0) // what it started
		return nil
	}
	s.replicas = append(s.replicas, r)
	s.stops = append(s.stops, func() {
		if p != nil {
			p.tree.Stop(grace(ctx))
		}
	})
	return r.Start(ctx)
}

// replicaEnvironment is what replicas of --exec get beside the rest: a secret that they share, and the store of the user.
func replicaEnvironment(replicas int) []string {
	if replicas < 2 {
		return nil
	}
	env := []string{"BRIDGE_SESSION_KEYS=" + rand.Text() + rand.Text()}
	if store := os.Getenv("BRIDGE_SHARED"); store != "" {
		env = append(env, "BRIDGE_SHARED="+store)
	}
	return env
}

// closeGroup ends what bridges of --exec have left running.
func (p *plan) closeGroup(ctx context.Context) {
	if p.group != nil {
		p.group.Close(grace(ctx))
	}
}

// checkReplicas refuses --replicas where nothing is started.
func (p *plan) checkReplicas() error {
	switch {
	case p.replicas < 1:
		return usagef("--replicas is %d: give 1 or more", p.replicas)
	case p.replicas > 1 && p.exec == "":
		return usagef("--replicas starts replicas of the bridge of --exec: give --exec too, or --url for each that runs")
	}
	return nil
}

// grace is how long a bridge may take to end: little when the user waits for it.
func grace(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return interruptGrace
	}
	return stopGrace
}

// splitCommand splits a command into words as a shell does. On Windows a backslash is a part of a path, and quotes nothing.
func splitCommand(command string) ([]string, error) {
	if filepath.Separator == '\\' {
		command = strings.ReplaceAll(command, `\`, `\\`)
	}
	return shlex.Split(command)
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*=`)

// hint says how a command is written that --exec does not take as a shell does; "": it has nothing of a shell.
func hint(words []string) string {
	if assignment.MatchString(words[0]) {
		return "; --exec sets no variables: write 'env " + words[0] + " …'"
	}
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains([]string{"|", "||", "&&", ";", "&", ">", "<"}, w) }); i > 0 {
		return "; --exec runs no shell, and " + words[i] + " is an argument of the program: write sh -c '…'"
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return ""
	}
	script, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer script.Close()
	first := make([]byte, 128)
	n, _ := script.Read(first) // what cannot be read has no first line
	line, _, _ := strings.Cut(string(first[:n]), "\n")
	if strings.HasPrefix(line, "#!") && strings.HasSuffix(line, "\r") {
		return "; the first line of " + path + " ends with CRLF, so its interpreter is not found: save it with LF"
	}
	return ""
}

// start runs command as part of a group, with its output in a log.
func start(command string, group *processtree.Group, log *bridgeLog, env []string) (*process, error) {
	words, err := splitCommand(command)
	if err != nil {
		return nil, usagef("--exec %q cannot be split into words: %v", command, err)
	}
	if len(words) == 0 {
		return nil, usagef("--exec %q has no command", command)
	}
	out := log.writer()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = drainTime
	tree, err := group.Start(cmd)
	if err != nil {
		return nil, &notReadyError{reason: fmt.Sprintf("the bridge %q cannot be started: %s%s", command, reason(err), hint(words))}
	}
	p := &process{command: command, cmd: cmd, tree: tree, log: log, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait()  // its outcome is in cmd.ProcessState
		_ = out.Close() // a log that cannot be written does not decide a run
		close(p.exited)
	}()
	return p, nil
}

// awaitReady waits until the bridge responds to a list request, with whatever status. It ends early, without an error,
// when ctx does: the run that follows reports that it was cut short.
func (p *process) awaitReady(ctx context.Context, url string, patience time.Duration) error {
	client := &http.Client{Timeout: readyRequest, Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if responds(limit, client, url+check.ListPath) {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			how := p.cmd.ProcessState.String()
			if p.cmd.ProcessState.Success() {
				how += "; a program that goes into the background (a daemon) has to stay in the foreground here"
			}
			return &notReadyError{reason: fmt.Sprintf("the bridge %q ended before it was ready: %s%s%s", p.command, how, hint(p.cmd.Args), p.log.tail())}
		case <-limit.Done():
			if ctx.Err() != nil {
				return nil
			}
			return &notReadyError{slow: true, reason: fmt.Sprintf("the bridge %q did not respond to GET %s at %s within %s (--ready-timeout)%s", p.command, check.ListPath, url, patience, p.log.tail())}
		}
	}
}

func responds(ctx context.Context, client *http.Client, url string) bool {
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

// endedByItself says how the process ended; "" while it runs, and where somebody else ended it, as a system does that is short of
// memory. A shell gives the signal that ended a program as 128 and its number.
func (p *process) endedByItself() string {
	how := p.ended()
	for signal, number := range map[string]int{"hangup": 1, "interrupt": 2, "killed": 9, "terminated": 15} {
		if how == "signal: "+signal || how == fmt.Sprintf("exit status %d", 128+number) {
			return ""
		}
	}
	return how
}

// ended says how the process ended; "" while it runs.
func (p *process) ended() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// notReadyError says that the bridge of --exec never responded.
type notReadyError struct {
	reason string
	slow   bool // it had all the time that it may take
}

func (e *notReadyError) Error() string { return e.reason }

// speak gives a way to start the command of --mcp-stdio: a bridge that speaks MCP on stdin and stdout. What it writes to
// stderr goes to the log of the bridge.
func speak(command string, group *processtree.Group, log *bridgeLog, env []string) (func(context.Context) (io.ReadWriteCloser, error), error) {
	words, err := splitCommand(command)
	if err != nil || len(words) == 0 {
		return nil, usagef("--mcp-stdio %q has no command that can be split into words", command)
	}
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = env
		cmd.WaitDelay = drainTime
		c := &conversation{cmd: cmd, log: log.writer()}
		cmd.Stderr = c.log
		var err error
		if c.WriteCloser, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if c.Reader, err = cmd.StdoutPipe(); err != nil {
			return nil, err
		}
		if c.tree, err = group.Start(cmd); err != nil {
			return nil, fmt.Errorf("start %q: %w", command, err)
		}
		c.forget = context.AfterFunc(ctx, c.tree.Kill)
		return c, nil
	}, nil
}

// conversation is a process on its stdin and stdout.
type conversation struct {
	io.Reader
	io.WriteCloser
	cmd    *exec.Cmd
	tree   *processtree.Tree
	log    io.WriteCloser
	forget func() bool // that the end of the context kills the process
}

// Close ends stdin, after which the process should end, and kills it with all that it started where it does not.
func (c *conversation) Close() error {
	defer c.log.Close()
	defer c.forget()
	c.WriteCloser.Close()
	kill := time.AfterFunc(stopGrace, c.tree.Kill)
	defer kill.Stop()
	err := c.cmd.Wait()
	c.tree.Stop(interruptGrace) // what it leaves behind
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	return nil
}
