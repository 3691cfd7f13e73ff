-- Redis' clock may step back: what lies further ahead than it ever may is brought near. Else a lease, a bell or a deadline
-- would stand until the clock has caught up. Uses the names of turn_sweep.
local function bring_near(key, field, at, most_ms)
  at = tonumber(at or '')
  if not at or at <= now + most_ms then return at end
  redis.call('HSET', key, field, now + most_ms)
  return now + most_ms
end

local PAST = {'rung_at', 'cancel_at', 'active_at', 'created_at', 'closing_at', 'parked_at', 'fin_rung', 'fin_failing_since'}

local function mend_clock()
  local at = redis.call('HMGET', turn, 'lease_until', 'fin_lease', 'fin_retry_at', 'opening_until', 'fin_retry_ms', 'opening_ms',
    unpack(PAST))
  bring_near(turn, 'lease_until', at[1], longest_lease_ms)
  bring_near(turn, 'fin_lease', at[2], longest_lease_ms)
  bring_near(turn, 'fin_retry_at', at[3], tonumber(at[5] or 0))
  bring_near(turn, 'opening_until', at[4], tonumber(at[6] or 0))
  for i, field in ipairs(PAST) do bring_near(turn, field, at[6 + i], 0) end
  local of_budget = redis.call('HMGET', budget, 'deadline', 'timeout_ms')
  bring_near(budget, 'deadline', of_budget[1], tonumber(of_budget[2] or 0))
end

-- What a call is known by, brought near where it is a time.
local CALL = {':status', ':rung_at', ':lease', ':attempt', ':effect', ':tool', ':started_at', ':dispatched_at'}
local CALL_PAST = {[2] = true, [7] = true, [8] = true}

local function read_call(call)
  local fields = {}
  for i, field in ipairs(CALL) do fields[i] = call .. field end
  local known = redis.call('HMGET', trace, unpack(fields))
  for i in pairs(CALL_PAST) do known[i] = bring_near(trace, fields[i], known[i], 0) end
  known[3] = bring_near(trace, fields[3], known[3], longest_lease_ms)
  return known
end
