-- Correct times after Redis' clock has stepped back: a time that lies further ahead than it ever may is moved closer.
-- Otherwise a lease, a bell or a deadline would last until the clock has caught up. Uses the names of turn_sweep.
-- @include lib/fields
-- @include lib/read_call
local function bring_near(key, field, at, most_ms)
  at = tonumber(at or '')
  if not at or at <= now + most_ms then return at end
  redis.call('HSET', key, field, now + most_ms)
  return now + most_ms
end

local PAST = {'rung_at', 'cancel_at', 'active_at', 'created_at', 'closing_at', 'parked_at', 'fin_rung', 'fin_failing_since'}

local function mend_clock()
  local at = read(turn, {'lease_until', 'fin_lease', 'fin_retry_at', 'opening_until', 'fin_retry_ms', 'opening_ms',
    'resumes_at', 'resumes_ms', unpack(PAST)})
  bring_near(turn, 'lease_until', at.lease_until, longest_lease_ms)
  bring_near(turn, 'fin_lease', at.fin_lease, longest_lease_ms)
  bring_near(turn, 'fin_retry_at', at.fin_retry_at, tonumber(at.fin_retry_ms or 0))
  bring_near(turn, 'opening_until', at.opening_until, tonumber(at.opening_ms or 0))
  local resumes_at = bring_near(turn, 'resumes_at', at.resumes_at, tonumber(at.resumes_ms or 0)) or now
  for _, field in ipairs(PAST) do bring_near(turn, field, at[field], 0) end
  local b = read(budget, {'deadline', 'timeout_ms'})
  bring_near(budget, 'deadline', b.deadline, tonumber(b.timeout_ms or 0) + math.max(0, resumes_at - now))
end

-- Read a call, with its times corrected.
local CALL_PAST = {'rung_at', 'started_at', 'dispatched_at'}

local function read_mended_call(call)
  local c = read_call(call, {'status', 'lease', 'attempt', 'effect', 'tool', 'bell', 'passed', unpack(CALL_PAST)})
  for _, field in ipairs(CALL_PAST) do c[field] = bring_near(trace, call .. ':' .. field, c[field], 0) end
  c.lease = bring_near(trace, call .. ':lease', c.lease, longest_lease_ms)
  return c
end
