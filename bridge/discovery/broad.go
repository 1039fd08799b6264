package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
)

// With an account that discovers for all, every caller is shown the tools that the account sees. What the site says the
// caller counts for what the caller may do: discover at all, and administer. Calls, and the look-ups that fill enums,
// are made as the caller: the account never runs anything.

// forAll reports whether an entry's tools are the account's.
func (e *Engine) forAll(en *entry) bool { return e.o.Account != nil && !en.account }

// asker is the account that asks the site for its methods, on behalf of a caller.
func (e *Engine) asker(who caller.Caller) caller.Caller {
	if e.o.Account == nil {
		return who
	}
	return e.o.Account.For(who)
}

// accountEntry is the entry of the account, in the caller's language.
func (e *Engine) accountEntry(who caller.Caller) *entry {
	account := e.o.Account.For(who)
	account.Trace = caller.Trace{}
	en := e.callers.GetOrMake(account.Identity, func() *entry { return &entry{who: account, account: true} })
	en.seen.Store(e.now())
	return en
}

// learnBroad puts a caller's own rights and the account's tools together.
func (e *Engine) learnBroad(ctx context.Context, who caller.Caller, now *knowledge, own *Response) error {
	d, err := e.o.Source.Read(*own)
	if err != nil {
		return unreadable(err)
	}
	now.rights = e.o.Rules.rightsIn(d)
	callable := map[string]bool{}
	for _, m := range d.Methods {
		callable[m.ID] = true
	}
	own.done() // the account's may be long, too
	all, err := e.inventory(ctx, who)
	if err != nil {
		return err
	}
	targets := e.o.Targets.of(ctx, who, e.o.Source, e.o.Rules.Translator, all.set.response, callable)
	if now.set, err = e.builder.build(e.ctx, e.o.Source, all.set.response, targets, e.epoch()); err != nil {
		return unreadable(err)
	}
	now.at = earlier(now.at, all.at)
	now.until = earlier(now.at.Add(e.o.Permission), all.until)
	return nil
}

// inventory is what the account sees at present.
func (e *Engine) inventory(ctx context.Context, who caller.Caller) (*knowledge, error) {
	en := e.accountEntry(who)
	for range 2 { // once more if it is made doubtful before the site responds
		k := en.known.Load()
		if !e.fresh(k) {
			if err := e.refresh(ctx, en, who.Trace, false); err != nil {
				return nil, err
			}
			k = en.known.Load()
		}
		switch {
		case !e.current(k):
		case k.refusal != nil: // of the bridge's own account: nothing that the caller's credentials could fix
			return nil, fault.New(fault.UpstreamError, caller.AccountRefused).Because(fmt.Errorf("%w: %w", errAccountRefused, k.refusal))
		default:
			return k, nil
		}
	}
	return nil, changing()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
