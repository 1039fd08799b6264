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

// unloggedKey is the attribute that says how many lines were left out.
const unloggedKey = "unlogged"

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

// messages count how often each message comes. Messages are constants of this program, so that there are few.
type messages struct {
	mu sync.Mutex
	m  map[string]*message
}

type message struct {
	rate     *rate.Limiter
	unlogged int64
}

// allow reports whether a line with a message is logged, and how many were not since the one before. before is how many the
// caller has left out by itself.
func (m *messages) allow(text string, before int64) (unlogged int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.m[text]
	if of == nil {
		of = &message{rate: rate.NewLimiter(lineRate, lineBurst)}
		m.m[text] = of
	}
	if !of.rate.Allow() {
		of.unlogged += 1 + before
		return 0, false
	}
	unlogged, of.unlogged = of.unlogged+before, 0
	return unlogged, true
}

func (h bounded) Handle(ctx context.Context, r slog.Record) error {
	short := slog.NewRecord(r.Time, r.Level, fault.Clip(r.Message, longestText), r.PC)
	if r.Level >= slog.LevelWarn {
		var before int64
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == unloggedKey {
				before = a.Value.Int64()
			}
			return true
		})
		unlogged, ok := h.often.allow(short.Message, before)
		if !ok {
			return nil
		}
		if unlogged > 0 {
			short.AddAttrs(slog.Int64(unloggedKey, unlogged))
		}
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == unloggedKey && r.Level >= slog.LevelWarn {
			return true
		}
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
