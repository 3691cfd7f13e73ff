-- Money by whom and by when. A window's counter has `granted`, which is what SQL allows it; `spent`; `held`, the worst case
-- of the `n` model calls that are in flight; `blind`, those of them whose worst case is not known; `run`, the Redis that counts, and `full`, when
-- all that there is was granted (money_grant). A scope's trust
-- says how many times its reservations its dearest bills were of late; it is made when the first one has come.
-- Uses the script's names: turn. Its fields `money`: what is held for the model call that is in flight, as JSON.
-- @include lib/now
-- @include lib/fields
local MOST_DISTRUST, FORGIVEN = 10, 0.95

-- The counter of the window in which a call begins now.
local function counter_now(w)
  local start = w.starts[1]
  for _, at in ipairs(w.starts) do if at <= now then start = at end end
  return w.key .. string.format('%.0f', start), start
end

-- Reserve the worst case of a call in each window of `asked` (JSON, '' for none), or in none. Returns nothing, or a refusal:
-- `wait` for calls that are in flight, or `short`: SQL is to grant `wanted` in all; more than that where the counter is new. A
-- call that is alone in its window may be as dear as it likes once: hence no cap is passed by more than one. While there is
-- money it is granted what it is likely to be billed, `expected`: SQL is not to know of less than is spent.
-- @lazy
local function reserve_money(turn_key, asked)
  local m, holds = cjson.decode(asked), {}
  local usd, is_blind = tonumber(m.usd), m.blind
  for _, w in ipairs(m.windows) do
    local key, start = counter_now(w)
    local c = read(key, {'granted', 'spent', 'held', 'n', 'blind', 'full'})
    local n, trust = tonumber(c.n or 0), tonumber(redis.call('GET', w.trust) or '')
    local taken = tonumber(c.spent or 0) + tonumber(c.held or 0)
    local wanted, expected = taken + usd * (n > 0 and trust or 1) * w.room, taken + usd * (trust or 1) * w.room
    local why = n > 0 and (not trust or is_blind and tonumber(c.blind or 0) > 0) and 'wait'
    if not why and (not c.granted or (c.full == '1' and wanted or expected) > tonumber(c.granted) + 1e-9) then why = 'short' end
    if why then
      return {why, w.name, start, string.format('%.12g', wanted), string.format('%.12g', expected), n, c.granted and '0' or '1'}
    end
    holds[#holds + 1] = {key, usd * (trust or 1), w.trust}
  end
  for _, hold in ipairs(holds) do
    redis.call('HINCRBYFLOAT', hold[1], 'held', hold[2])
    redis.call('HINCRBY', hold[1], 'n', 1)
    if is_blind then redis.call('HINCRBY', hold[1], 'blind', 1) end
  end
  redis.call('HSET', turn_key, 'money', cjson.encode({usd = usd, blind = is_blind, holds = holds}))
end

-- The call that money was held for is over: it has cost `usd`. `held` is the turn's field `money`.
-- @lazy
local function settle_money(turn_key, held, usd)
  local m = cjson.decode(held)
  redis.call('HDEL', turn_key, 'money')
  for _, hold in ipairs(m.holds) do
    local key, trust_key = hold[1], hold[3]
    if redis.call('EXISTS', key) == 1 then
      redis.call('HINCRBYFLOAT', key, 'held', -hold[2])
      redis.call('HINCRBYFLOAT', key, 'spent', usd)
      redis.call('HINCRBY', key, 'n', -1)
      if m.blind then redis.call('HINCRBY', key, 'blind', -1) end
    end
    if not m.blind and m.usd > 0 and usd > 0 then -- what was not billed teaches nothing
      local before = tonumber(redis.call('GET', trust_key) or 1)
      local trust = math.min(MOST_DISTRUST, math.max(1, usd / m.usd, 1 + (before - 1) * FORGIVEN))
      redis.call('SET', trust_key, string.format('%.4f', trust), 'EX', 40 * 86400)
    end
  end
end

-- The turn no longer waits in a line for money (turn_park).
-- @lazy
local function leave_line(turn_key, line, sid, tid)
  redis.call('ZREM', line, sid .. ' ' .. tid)
  redis.call('HDEL', turn_key, 'waits_for', 'resumes_at', 'resumes_ms', 'line')
end
