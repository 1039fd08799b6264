package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/shlex"

	"github.com/bridgecheck/bridgecheck/internal/authserver"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/machine"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// The settings of a bridge of --exec, unless flags or the configuration give others.
const (
	execDiscoveryTTL    = time.Second
	execUpstreamTimeout = 2 * time.Second
)

// How the run waits for a bridge of --exec, and ends it.
const (
	readyTime      = 30 * time.Second // until it responds as a bridge, unless --ready-timeout says otherwise
	readyPoll      = 20 * time.Millisecond
	readyRequest   = 5 * time.Second        // one request while it gets ready
	strangeTime    = 2 * time.Second        // of responses that are no bridge's, before it is tested as it is: routes may come late
	stopGrace      = 5 * time.Second        // between SIGTERM and SIGKILL
	interruptGrace = 500 * time.Millisecond // the same after Ctrl-C, when the user waits
	exitTime       = time.Second            // within which a bridge that was killed has ended
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
		drupal, err = s.mock(ctx, plan, cmp.Or(plan.mockListen, "127.0.0.1:0"), o)
	}
	if err != nil {
		return err
	}
	listen, release, err := freeport.Address()
	if err != nil {
		return err
	}
	s.stops = append(s.stops, release)
	env := append(s.environment(drupal, o), "BRIDGE_LISTEN="+listen)
	if s.drupal != nil || s.control != nil {
		env = append(env, serviceAccount...)
		env = append(env, "BRIDGE_AUTH_ADDRESS_FAILURES=100000", "BRIDGE_AUTH_TOTAL_FAILURES=100000") // the run sends many wrong credentials
	}
	if s.drupal != nil && s.authority == nil { // whose tokens expire by the machine's clock
		env = append(env, s.startClock()...)
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
	s.stops = append(s.stops, func() {
		p.tree.Stop(grace(ctx))
		select {
		case <-p.exited: // before that the system does not count what it has computed
		case <-time.After(exitTime): // it may not end, as where nothing can be seen of its processes
		}
	})
	s.bridge = p
	s.target.URL = "http://" + listen
	if err := p.awaitReady(ctx, s.target.URL, plan.readyTimeout, o.Capabilities); err != nil {
		return err
	}
	for range plan.replicas - 1 {
		r, err := s.another(ctx, plan, log, env, o.Capabilities)
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, r)
		if err := r.Start(ctx); err != nil {
			return err
		}
	}
	return s.setApart(ctx, plan, log, env, o.Capabilities)
}

// setApart makes ready the process of the bridge that a check ends, or whose permission TTL is not its discovery TTL: for the bridge
// under test they are alike, as the checks wait for them. It has a site of its own name, so that nothing it stores is taken for the other's.
func (s *stage) setApart(ctx context.Context, plan *plan, log *bridgeLog, env, capabilities []string) error {
	if s.drupal == nil || s.authority != nil || plan.replicas > 1 || plan.alone {
		return nil
	}
	server, err := s.drupal.Listen("127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serving the site of a second process of the bridge: %w", err)
	}
	s.stops = append(s.stops, func() { server.Close() })
	r, err := s.another(ctx, plan, log, append(slices.Clone(env), "DRUPAL_URL="+server.URL, "BRIDGE_DISCOVERY_TTL=60"), capabilities)
	s.apart = &r
	return err
}

// startClock names a file with the seconds by which a bridge that reads it takes its cache to be older than it is. Where there can be
// none the run waits for TTLs, as it does for other bridges.
func (s *stage) startClock() (env []string) {
	file, path, err := clockFile()
	if err != nil {
		return nil
	}
	s.stops = append(s.stops, func() {
		file.Close()
		os.Remove(path)
	})
	var ahead time.Duration
	s.clock = func(by time.Duration) {
		ahead += by
		if _, err := fmt.Fprintf(io.NewOffsetWriter(file, 0), "%.9f\n", ahead.Seconds()); err != nil { // it never gets shorter
			slog.Error("the clock of the bridge cannot be moved", "err", err)
		}
	}
	s.clock(0)
	return []string{"BRIDGE_CLOCK=" + path}
}

// environment is what every bridge gets that the run starts, and notes how long it caches and waits.
func (s *stage) environment(drupal string, o engine.Options) []string {
	s.discoveryTTL = cmp.Or(o.Bridge.DiscoveryTTL, execDiscoveryTTL)
	s.upstreamTimeout = cmp.Or(o.Bridge.UpstreamTimeout, execUpstreamTimeout)
	ttl := strconv.FormatFloat(s.discoveryTTL.Seconds(), 'f', -1, 64)
	return []string{"DRUPAL_URL=" + drupal, "BRIDGE_DISCOVERY_TTL=" + ttl, "BRIDGE_PERMISSION_TTL=" + ttl,
		fmt.Sprintf("BRIDGE_UPSTREAM_TIMEOUT=%d", int(s.upstreamTimeout.Seconds())), fmt.Sprintf("BRIDGE_PAGE_SIZE=%d", o.Bridge.PageSize)}
}

// serviceAccount is the account of the mock with all permissions, for a bridge's environment.
var serviceAccount = []string{"DRUPAL_USER=service", "DRUPAL_PASSWORD=service-pass"}

// another is a further process of the bridge of --exec, which the checks start and end.
func (s *stage) another(ctx context.Context, plan *plan, log *bridgeLog, env, capabilities []string) (check.Replica, error) {
	listen, release, err := freeport.Address()
	if err != nil {
		return check.Replica{}, err
	}
	s.stops = append(s.stops, release)
	env = append(slices.Clone(env), "BRIDGE_LISTEN="+listen)
	r := check.Replica{URL: "http://" + listen}
	var p *process
	r.Start = func(ctx context.Context) (err error) {
		if p, err = start(plan.exec, plan.group, log, env); err != nil {
			return err
		}
		return p.awaitReady(ctx, r.URL, plan.readyTimeout, capabilities)
	}
	r.Stop = func(grace time.Duration) {
		p.tree.Stop(grace)
		<-p.exited
	}
	r.Kill = func() error {
		p.tree.Kill()
		<-p.exited
		p.tree.Stop(0) // what it started
		return nil
	}
	s.stops = append(s.stops, func() {
		if p != nil {
			p.tree.Stop(grace(ctx))
		}
	})
	return r, nil
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
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = env
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("the bridge %q cannot be started: %s", command, cmp.Or(machine.Fault(err), err.Error()))
	}
	cmd.Stdout, cmd.Stderr = write, write
	tree, err := group.Start(cmd)
	_ = write.Close() // its processes have it
	if err != nil {
		_ = read.Close()
		if why := machine.Fault(err); why != "" {
			return nil, fmt.Errorf("the bridge %q cannot be started: %s", command, why)
		}
		var file *fs.PathError
		if errors.As(err, &file) && file.Op == "open" { // of ours, as /dev/null is
			return nil, fmt.Errorf("the bridge %q cannot be started: %w", command, err)
		}
		return nil, &notReadyError{reason: fmt.Sprintf("the bridge %q cannot be started: %s%s", command, reason(err), hint(words))}
	}
	p := &process{command: command, cmd: cmd, tree: tree, log: log, exited: make(chan struct{})}
	written := make(chan struct{})
	go func() { // until the last process has ended that holds the pipe: a child that serves would end by SIGPIPE
		out := log.writer()
		_, _ = io.Copy(out, read)
		_ = read.Close()
		_ = out.Close() // a log that cannot be written does not decide a run
		close(written)
	}()
	go func() {
		_ = cmd.Wait() // its outcome is in cmd.ProcessState
		select {
		case <-written:
		case <-time.After(drainTime):
		}
		close(p.exited)
	}()
	return p, nil
}

// awaitReady waits until the bridge responds as one. It ends early, without an error, when ctx does: the run that follows
// reports that it was cut short.
func (p *process) awaitReady(ctx context.Context, url string, patience time.Duration, capabilities []string) error {
	via := &http.Client{Timeout: readyRequest, Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer via.CloseIdleConnections()
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	ask := listTools
	if !slices.Contains(capabilities, "tools") {
		ask = initialize
	}
	var strange time.Time // since when something responds that is no bridge
	last := sighting{seen: "nothing"}
	for {
		began := time.Now()
		if sight := look(limit, via, url, ask); limit.Err() == nil {
			last = sight
		} else if waited := time.Since(began); waited > time.Second { // a refused connection says so at once
			last = sighting{seen: fmt.Sprintf("no response for %v to the request under way", waited.Round(100*time.Millisecond))}
		}
		switch {
		case last.bridge:
			return nil
		case !last.strange:
			strange = time.Time{}
		case strange.IsZero():
			strange = time.Now()
		case time.Since(strange) > strangeTime:
			return nil // it is not getting ready: the run finds out what it is
		}
		if how := p.ended(); how != "" && !p.tree.Alive() { // a child of it may serve
			if p.cmd.ProcessState.Success() {
				how += "; a program that goes into the background (a daemon) has to stay in the foreground here"
			}
			return &notReadyError{reason: fmt.Sprintf("the bridge %q ended before it was ready: %s%s%s", p.command, how, hint(p.cmd.Args), p.log.tail())}
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			if ctx.Err() != nil || last.busy { // the run says what is wrong with the site
				return nil
			}
			return &notReadyError{slow: true, reason: fmt.Sprintf("the bridge %q did not respond as a bridge to %s %s at %s within %s (--ready-timeout); last seen: %s%s",
				p.command, ask.method, ask.path, url, patience, last.seen, p.log.tail())}
		}
	}
}

// question is a request to which a bridge responds as one.
type question struct{ method, path, body string }

var (
	listTools  = question{http.MethodGet, check.ListPath, ""}
	initialize = question{http.MethodPost, check.MCPPath,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bridgecheck","version":"1"}}}`}
)

// sighting is what responds at the address of the bridge.
type sighting struct {
	bridge  bool   // it is a bridge
	busy    bool   // which says that it is not ready, and when it may be
	strange bool   // it is something else, and no gateway whose server is not up yet
	seen    string // in words
}

// look asks once. A session that is opened is ended.
func look(ctx context.Context, via *http.Client, url string, ask question) sighting {
	status, header, body, err := ask.send(ctx, via, url)
	if err != nil {
		s := sighting{seen: reason(err)}
		if errors.Is(err, syscall.ECONNREFUSED) {
			s.seen += fmt.Sprintf("; the process runs, and nothing listens at the address in BRIDGE_LISTEN (%s): the bridge has to read that variable",
				strings.TrimPrefix(url, "http://"))
		}
		return s
	}
	if id := header.Get("Mcp-Session-Id"); id != "" {
		end := question{method: http.MethodDelete, path: ask.path}
		_, _, _, _ = end.send(ctx, via, url, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25") // a bridge need not end it
	}
	var words struct { // of the contract, or of JSON-RPC
		Tools json.RawMessage `json:"tools"`
		Error struct {
			Code json.RawMessage `json:"code"`
		} `json:"error"`
		JSONRPC string `json:"jsonrpc"`
	}
	_ = json.Unmarshal(body, &words) // what is no JSON has none of them
	unavailable := status >= http.StatusBadGateway && status <= http.StatusGatewayTimeout
	envelope := len(words.Error.Code) > 0 && words.Error.Code[0] == '"'
	s := sighting{seen: strings.TrimSpace(fmt.Sprintf("%d %s", status, exact.Cut(client.OneLine(string(body)), 120)))}
	switch {
	case envelope && unavailable && header.Get("Retry-After") != "":
		s.busy = true
	case status == http.StatusUnauthorized, status == http.StatusForbidden, envelope, words.JSONRPC != "" && !unavailable,
		status == http.StatusOK && (words.Tools != nil || strings.HasPrefix(header.Get("Content-Type"), "text/event-stream")):
		s.bridge = true
	case !unavailable:
		s.strange = true
	}
	return s
}

// send sends the request, with headers by name and value.
func (q question) send(ctx context.Context, via *http.Client, url string, headers ...string) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, q.method, url+q.path, strings.NewReader(q.body))
	if err != nil {
		return 0, nil, nil, err
	}
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := via.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	var body []byte
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") { // which may not end
		body, _ = io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what is cut off is no JSON
	}
	return resp.StatusCode, resp.Header, body, nil
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

// notReadyError says that the bridge of --exec, or the site of bridge --check, never responded as one.
type notReadyError struct {
	reason string
	slow   bool // it had all the time that it may take
}

func (e *notReadyError) Error() string { return e.reason }

// speak returns a way to start the command of --mcp-stdio: a bridge that speaks MCP on stdin and stdout. What it writes to
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
