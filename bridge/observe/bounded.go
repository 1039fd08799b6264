package observe

import (
	"context"
	"log/slog"
	"sync"

	"golang.org/x/time/rate"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// longestText is how many bytes of one text a line has. An error may hold what a site, a store or an authorization server sent.
const longestText = 4 << 10

// Warnings with the same message are logged at this rate, and so many at once: whoever makes the bridge fail fills no disk.
const lineRate, lineBurst = 10, 200

// Bounded is a logger that cuts long texts, and leaves out warnings of which there are many. The attribute unlogged says how many.
func Bounded(log *slog.Logger) *slog.Logger {
	if _, is := log.Handler().(bounded); is {
		return log
	}
	return slog.New(bounded{log.Handler(), &messages{m: map[string]*message{}}})
}

type bounded struct {
	slog.Handler
	often *messages
}

// messages are how often each message comes; they are constants of this program.
type messages struct {
	mu sync.Mutex
	m  map[string]*message
}

type message struct {
	rate     *rate.Limiter
	unlogged int64
}

// allow reports whether a line with a message is logged, and how many were not since the one before.
func (m *messages) allow(text string) (unlogged int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.m[text]
	if of == nil {
		of = &message{rate: rate.NewLimiter(lineRate, lineBurst)}
		m.m[text] = of
	}
	if !of.rate.Allow() {
		of.unlogged++
		return 0, false
	}
	unlogged, of.unlogged = of.unlogged, 0
	return unlogged, true
}

func (h bounded) Handle(ctx context.Context, r slog.Record) error {
	short := slog.NewRecord(r.Time, r.Level, fault.Clip(r.Message, longestText), r.PC)
	if r.Level >= slog.LevelWarn {
		unlogged, ok := h.often.allow(short.Message)
		if !ok {
			return nil
		}
		if unlogged > 0 {
			short.AddAttrs(slog.Int64("unlogged", unlogged))
		}
	}
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case string:
			a.Value = slog.StringValue(fault.Clip(v, longestText))
		case error:
			a.Value = slog.StringValue(fault.Clip(v.Error(), longestText))
		}
		short.AddAttrs(a)
		return true
	})
	return h.Handler.Handle(ctx, short)
}

func (h bounded) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bounded{h.Handler.WithAttrs(attrs), h.often}
}

func (h bounded) WithGroup(name string) slog.Handler {
	return bounded{h.Handler.WithGroup(name), h.often}
}
