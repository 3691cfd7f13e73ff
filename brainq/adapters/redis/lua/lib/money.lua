-- Budgets. A window is one budget in one hour, day or month. Its counter is a hash:
--   granted   the total that SQL allows; `full` is '1' if SQL has no more for now (money_grant)
--   spent     what calls have cost
--   held      what the `n` calls in flight have reserved; `blind` of them have an unknown worst case
--   run       the Redis that counts
-- The trust of a scope is the factor by which its dearest recent bill exceeded the reservation. The first bill creates it.
-- The turn's field `money` has the reservation of its call in flight: {usd, blind, holds}, where a hold is the counter, the
-- reserved amount and the key of the trust. Older builds read it by these places.
-- Uses the script's names: turn.
--
-- Example: granted 10, spent 6, held 1 (n = 1), trust 2. A call whose worst case is 1 dollar expects a bill of up to 2 dollars,
-- so it needs 6 + 1 + 2 = 9 of the 10. It begins: held becomes 3 and n becomes 2. A second such call needs 6 + 3 + 2 = 11. It is
-- refused (`short`) until SQL grants 11. If SQL has no more (full), a call that is alone (n = 0) needs only its worst case
-- without trust, 6 + 1 = 7: it may then cost more than it reserved, so a cap is exceeded by one call at most.
-- @include lib/now
-- @include lib/fields
local MOST_DISTRUST, FORGIVEN = 10, 0.95

-- Return the counter of the window in which a call begins now, and when that window began.
local function counter_now(w)
  local start = w.starts[1]
  for _, at in ipairs(w.starts) do if at <= now then start = at end end
  return w.key .. string.format('%.0f', start), start
end

-- Reserve the worst case of a call in each window of `asked` (JSON), or in none. Returns nil, or a refusal:
--   wait    until calls in flight have ended: no bill has shown yet what estimates are worth, or another call is blind, too
--   short   SQL is to grant `wanted` in all, and `expected` while it has that much; more than that to a new counter
-- A window has `room` 2 if as much must be left again for the turn's last answer, else 1.
-- @lazy
local function reserve_money(turn_key, asked)
  local m, holds = cjson.decode(asked), {}
  local usd, is_blind = tonumber(m.usd), m.blind
  for _, w in ipairs(m.windows) do
    local counter, start = counter_now(w)
    local c = read(counter, {'granted', 'spent', 'held', 'n', 'blind', 'full'})
    local in_flight, trust = tonumber(c.n or 0), tonumber(redis.call('GET', w.trust) or '')
    local taken, reserved = tonumber(c.spent or 0) + tonumber(c.held or 0), usd * (trust or 1)
    local expected = taken + reserved * w.room
    local wanted = taken + usd * (in_flight > 0 and trust or 1) * w.room
    local needed = c.full == '1' and wanted or expected
    local why
    if in_flight > 0 and not trust then
      why = 'wait'
    elseif in_flight > 0 and is_blind and tonumber(c.blind or 0) > 0 then
      why = 'wait'
    elseif not c.granted or needed > tonumber(c.granted) + 1e-9 then
      why = 'short'
    end
    if why then
      local wanted_text, expected_text = string.format('%.12g', wanted), string.format('%.12g', expected)
      return {why, w.name, start, wanted_text, expected_text, in_flight, c.granted and '0' or '1'}
    end
    holds[#holds + 1] = {counter, reserved, w.trust}
  end
  for _, hold in ipairs(holds) do
    local counter, reserved = unpack(hold)
    redis.call('HINCRBYFLOAT', counter, 'held', reserved)
    redis.call('HINCRBY', counter, 'n', 1)
    if is_blind then redis.call('HINCRBY', counter, 'blind', 1) end
  end
  redis.call('HSET', turn_key, 'money', cjson.encode({usd = usd, blind = is_blind, holds = holds}))
end

-- Replace what a call that has ended held by what it has cost. `held` is the turn's field `money`.
-- @lazy
local function settle_money(turn_key, held, usd)
  local m = cjson.decode(held)
  redis.call('HDEL', turn_key, 'money')
  for _, hold in ipairs(m.holds) do
    local counter, reserved, trust_key = unpack(hold)
    if redis.call('EXISTS', counter) == 1 then
      redis.call('HINCRBYFLOAT', counter, 'held', -reserved)
      redis.call('HINCRBYFLOAT', counter, 'spent', usd)
      redis.call('HINCRBY', counter, 'n', -1)
      if m.blind then redis.call('HINCRBY', counter, 'blind', -1) end
    end
    if not m.blind and m.usd > 0 and usd > 0 then -- a call without a bill shows nothing about estimates
      local before = tonumber(redis.call('GET', trust_key) or 1)
      local trust = math.min(MOST_DISTRUST, math.max(1, usd / m.usd, 1 + (before - 1) * FORGIVEN))
      redis.call('SET', trust_key, string.format('%.4f', trust), 'EX', 40 * 86400)
    end
  end
end

-- Take a turn out of the queue of a budget, in which turn_park put it.
-- @lazy
local function leave_line(turn_key, line, sid, tid)
  redis.call('ZREM', line, sid .. ' ' .. tid)
  redis.call('HDEL', turn_key, 'waits_for', 'resumes_at', 'resumes_ms', 'line')
end
