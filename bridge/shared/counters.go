package shared

import (
	"context"
	"strconv"
	"time"

	"github.com/bridgecheck/bridgecheck/bridge/throttle"
)

// The clock of all counters is the store's.

// take is the generic cell rate algorithm, a token bucket in one number: when the next call would be on time. It gives the
// microseconds to wait, 0 for a call that may be made now and was counted.
var take = newScript(`
local now = redis.call('TIME'); now = now[1] * 1000000 + now[2]
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local due = math.min(math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now), now + burst * interval)
local wait = due - (burst - 1) * interval - now
if wait > 0 then return math.ceil(wait) end
redis.call('SET', KEYS[1], string.format('%.0f', due + interval), 'PX', math.ceil((due + interval - now) / 1000) + 1)
return 0`)

// Take counts a call of a bucket that allows so many a second, and burst at once, over all replicas. It gives how long to
// wait before one is allowed; 0: now.
func (s *Store) Take(bucket []byte, perSecond float64, burst int) (wait time.Duration, err error) {
	interval := strconv.FormatFloat(1e6/perSecond, 'f', -1, 64)
	names := []string{s.key("rate", s.keys.Load().Digest(bucket))}
	err = s.do("take", func(ctx context.Context, c *client) error {
		v, err := c.run(ctx, take, names, []string{interval, strconv.Itoa(burst)})
		if err == nil && (v.kind != ':' || v.n < 0 || float64(v.n) > 1e6/perSecond+1) {
			err = odd("not a time to wait, which is at most that between two calls")
		}
		if err == nil {
			wait = time.Duration(v.n) * time.Microsecond
		}
		return err
	})
	return wait, err
}

// pendingTime is how long an attempt may take; one that has not ended after it counts as refused.
const pendingTime = time.Minute

// reserve adds an attempt to all counters, sorted sets by time, unless one is full. It gives 0; or 1 and the microseconds
// until a place is free; or 2 where attempts that have not ended take the places.
var reserve = newScript(`
local now = redis.call('TIME'); now = now[1] * 1000000 + now[2]
local busy = false
for i, key in ipairs(KEYS) do
  local window, limit = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - window))
  local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  if #all / 2 >= limit then
    for j = 1, #all, 2 do
      busy = busy or string.sub(all[j], 1, 1) == 'p' and tonumber(all[j + 1]) > now - tonumber(ARGV[2])
    end
    if not busy then return {1, math.ceil(tonumber(all[#all - 2 * limit + 2]) + window - now)} end
  end
end
if busy then return {2, 0} end
for i, key in ipairs(KEYS) do
  redis.call('ZADD', key, string.format('%.0f', now), 'p' .. ARGV[1])
  redis.call('PEXPIRE', key, math.ceil(tonumber(ARGV[2 * i + 1]) / 1000))
end
return {0, 0}`)

// settle ends an attempt: ARGV[2] is 1 where it was refused.
var settle = newScript(`
local now = redis.call('TIME'); now = now[1] * 1000000 + now[2]
for i, key in ipairs(KEYS) do
  redis.call('ZREM', key, 'p' .. ARGV[1])
  if ARGV[2] == '1' then
    redis.call('ZADD', key, string.format('%.0f', now), 'f' .. ARGV[1])
    redis.call('PEXPIRE', key, math.ceil(tonumber(ARGV[i + 2]) / 1000))
  end
end
return 0`)

// Reserve takes a place in all counters for an attempt, or in none: then wait says when one is free, or busy that it depends
// on attempts under way.
func (s *Store) Reserve(attempt string, counters []throttle.Counter) (wait time.Duration, busy bool, err error) {
	args := []string{attempt, number(pendingTime.Microseconds())}
	for _, c := range counters {
		args = append(args, number(c.Window.Microseconds()), number(int64(c.Limit)))
	}
	longest := time.Duration(0)
	for _, c := range counters {
		longest = max(longest, c.Window)
	}
	err = s.do("reserve", func(ctx context.Context, c *client) error {
		v, err := c.run(ctx, reserve, s.keysOf(counters), args)
		if err != nil {
			return err
		}
		n, err := v.integers(2)
		switch {
		case err != nil:
		case n[0] == 1 && n[1] > 0 && n[1] <= longest.Microseconds()+1:
			wait = time.Duration(n[1]) * time.Microsecond
		case n[0] == 0 && n[1] == 0:
		case n[0] == 2 && n[1] == 0:
			busy = true
		default:
			err = odd("not the outcome of an attempt")
		}
		return err
	})
	return wait, busy, err
}

// Settle ends an attempt that Reserve took places for, or counts one that was refused without.
func (s *Store) Settle(attempt string, counters []throttle.Counter, refused bool) {
	outcome := "0"
	if refused {
		outcome = "1"
	}
	args := []string{attempt, outcome}
	for _, c := range counters {
		args = append(args, number(c.Window.Microseconds()))
	}
	s.do("settle", func(ctx context.Context, c *client) error { //nolint:errcheck // the place is free, or counted, when its time is over
		_, err := c.run(ctx, settle, s.keysOf(counters), args)
		return err
	})
}

// keysOf are the counters' names in the store.
func (s *Store) keysOf(counters []throttle.Counter) []string {
	var names []string
	for _, c := range counters {
		names = append(names, s.key("refused", s.keys.Load().Digest([]byte(c.Name))))
	}
	return names
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
