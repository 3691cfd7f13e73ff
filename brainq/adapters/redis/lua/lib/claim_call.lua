-- Claiming an attempt of a call. Uses the script's names: trace budget events run, and lib/now.
-- @include lib/event
-- @include lib/claimed_from
local function time_left_ms() return redis.call('HGET', budget, 'deadline') - now end

-- The attempt runs from now on, and `owner` renews its lease. `c`: the call's effect and tool.
local function begin_attempt(call, attempt, c, owner, lease_ms)
  redis.call('HSET', trace, call .. ':status', 'running', call .. ':owner', owner, call .. ':lease', now + lease_ms,
    call .. ':started_at', now, unpack(c.effect == 'read_only' and {} or {note_redis(call, attempt)}))
  emit(events, 'call.running', {call = call, tool = c.tool, attempt = attempt})
end

-- What whoever claimed it must know. `c`: spec, cap_ms, effect, tool, edited, waits_at and dispatched_at of the call; `t`: step and brain
-- of its turn.
local function call_grant(c, t, remaining_ms)
  local dispatched_at = tonumber(c.dispatched_at) or now
  return c.spec, tonumber(c.cap_ms), remaining_ms, c.effect, c.tool, tonumber(t.step), c.edited or '0', t.brain or '',
    math.max(0, now - dispatched_at), c.waits_at and math.max(0, dispatched_at - tonumber(c.waits_at)) or 0
end
