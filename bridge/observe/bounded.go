package observe

import (
	"context"
	"log/slog"

	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// longestText is how many bytes of one text a line has. An error may hold what a site, a store or an authorization server sent.
const longestText = 4 << 10

// Bounded is a logger that cuts long texts.
func Bounded(log *slog.Logger) *slog.Logger {
	if _, is := log.Handler().(bounded); is {
		return log
	}
	return slog.New(bounded{log.Handler()})
}

type bounded struct{ slog.Handler }

func (h bounded) Handle(ctx context.Context, r slog.Record) error {
	short := slog.NewRecord(r.Time, r.Level, fault.Clip(r.Message, longestText), r.PC)
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
	return bounded{h.Handler.WithAttrs(attrs)}
}

func (h bounded) WithGroup(name string) slog.Handler { return bounded{h.Handler.WithGroup(name)} }
