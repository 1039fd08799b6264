package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
)

// maxAtOnce is how many requests of a stdio client are worked on at one time.
const maxAtOnce = 16

// maxSubscriptions is how many subscriptions a stdio client may have open.
const maxSubscriptions = 16

// ServeStdio speaks MCP over in and out, a message a line, as one caller, until in ends or ctx does. Requests under way
// are then completed. A caller that the site refuses is an error, which the first request gets, too: clients show that, and not
// what a process writes before it ends. It says what the caller lacks, if anything.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, who caller.Caller, lacks string) error {
	var refused error
	if _, why := s.view(ctx, who); why != nil && why.cause != nil && refuses[why.cause.Code] {
		refused = fmt.Errorf("the site refuses the account: %s", cmp.Or(lacks, why.message))
	}
	p := &pipe{s: s, who: who, out: out}
	p.work.SetLimit(maxAtOnce)
	p.ctx, p.stop = context.WithCancel(ctx)
	lines := make(chan []byte)
	ended := make(chan error, 1)
	go func() {
		ended <- p.lines(in, lines)
		close(lines)
	}()
	for {
		select {
		case line, open := <-lines:
			if !open {
				p.finish()
				return cmp.Or(<-ended, refused)
			}
			if m, _ := read(line); refused != nil && m.id != nil {
				p.send(failure(m.id, protocolErrorf(codeRefused, "%v", refused)))
				p.stop()
				return refused
			}
			p.take(line)
		case <-ctx.Done():
			p.finish()
			return nil
		}
	}
}

// pipe is a client on stdio.
type pipe struct {
	s   *Server
	who caller.Caller

	mu  sync.Mutex // held while a line is written
	out io.Writer

	ctx     context.Context // ends what lasts: subscriptions
	stop    context.CancelFunc
	work    errgroup.Group
	lasting sync.WaitGroup

	session *session // nil before initialize
	listens bool     // the client receives what changes in its session

	subscriptions atomic.Int64 // of the stateless revision, open ones
	flights       flights      // of the stateless revision
}

// lines reads messages; empty lines are skipped. One that is too long is refused, and the next is read.
func (p *pipe) lines(in io.Reader, to chan<- []byte) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, tooLong, err := readLine(r, int(p.s.o.MaxBody))
		line = bytes.TrimSpace(line)
		switch {
		case tooLong:
			p.send(failure(nil, protocolErrorf(codeInvalidRequest, "The message is longer than %d bytes.", p.s.o.MaxBody)))
		case len(line) > 0:
			select {
			case to <- line:
			case <-p.ctx.Done():
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads to the end of a line, and keeps no more of it than longest bytes.
func readLine(r *bufio.Reader, longest int) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > longest; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// finish waits until all requests are done, and ends what would last.
func (p *pipe) finish() {
	p.work.Wait() //nolint:errcheck // nobody gives an error
	p.stop()
	p.lasting.Wait()
}

func (p *pipe) send(message []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(append(message, '\n')) //nolint:errcheck // the client went away, and stdin will end
}

// take works on a message, in the background where it may take time.
func (p *pipe) take(line []byte) {
	m, wrong := read(line)
	switch {
	case wrong != nil:
		p.send(failure(m.id, wrong))
	case m.id == nil:
		p.notice(m)
	case m.version() != "":
		p.stateless(m)
	case m.method == "initialize":
		revision, result, wrong := p.s.initialized(m)
		if wrong != nil {
			p.send(failure(m.id, wrong))
			return
		}
		p.session = newSession("", revision, p.who.Owner())
		p.send(response(m.id, result))
	case p.session == nil && statelessMethods[m.method] != nil && sessionMethods[m.method] == nil:
		p.send(failure(m.id, protocolErrorf(codeInvalidParams, "The parameter _meta must hold %s.", metaVersion)))
	case p.session == nil && m.method != "ping":
		p.send(failure(m.id, protocolErrorf(codeInvalidRequest, "Send initialize first.")))
	case p.session == nil:
		p.run(&p.flights, request{message: m, revision: November2025})
	default:
		p.run(&p.session.flights, request{message: m, revision: p.session.revision, session: p.session})
	}
}

// notice takes a notification.
func (p *pipe) notice(m message) {
	switch m.method {
	case "notifications/cancelled":
		p.flights.cancel(m)
		if p.session != nil {
			p.session.flights.cancel(m)
		}
	case "notifications/initialized":
		if sess := p.session; sess != nil && !p.listens {
			p.listens = true // however often it says so
			p.lasting.Go(func() {
				p.s.hold(p.ctx, p.who, sess.listed.Load(), func() { p.send(notification(listChanged, nil)) }, func() {})
			})
		}
	}
}

// stateless takes a request of the revision without sessions.
func (p *pipe) stateless(m message) {
	if m.version() != July2026 {
		p.send(failure(m.id, unsupported(m.version())))
		return
	}
	if own, ok := m.meta.Get(metaCapabilities); !ok || own.Kind != "object" {
		p.send(failure(m.id, protocolErrorf(codeInvalidParams, "The parameter _meta must hold %s, an object.", metaCapabilities)))
		return
	}
	if m.method != "subscriptions/listen" {
		p.run(&p.flights, request{message: m, revision: July2026})
		return
	}
	sub, wrong := subscriptionOf(m)
	if wrong != nil {
		p.send(failure(m.id, wrong))
		return
	}
	if p.subscriptions.Add(1) > maxSubscriptions {
		p.subscriptions.Add(-1)
		p.send(failure(m.id, protocolErrorf(codeRefused, "There are %d open subscriptions already; one is enough.", maxSubscriptions)))
		return
	}
	ctx, done := p.flights.start(p.ctx, m.id)
	p.lasting.Go(func() {
		defer p.subscriptions.Add(-1)
		defer done()
		p.s.subscribe(ctx, p.send, func() {}, p.who, sub)
	})
}

// run serves a request, unless its client cancels it.
func (p *pipe) run(flights *flights, r request) {
	r.who, r.notify = p.who, p.send
	ctx, done := flights.start(context.WithoutCancel(p.ctx), r.id)
	p.work.Go(func() error {
		defer done()
		result, wrong := p.s.handle(ctx, r)
		switch {
		case ctx.Err() != nil: // cancelled
		case wrong != nil:
			p.send(failure(r.id, wrong))
		default:
			p.send(response(r.id, result))
		}
		return nil
	})
}
