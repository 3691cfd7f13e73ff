-- The claim of one attempt of a call. It uses the script's names trace, budget, events and run, and lib/now.
-- @include lib/event
-- @include lib/claimed_from
local function time_left_ms() return redis.call('HGET', budget, 'deadline') - now end

-- Records that the attempt runs from now on, and that `owner` has its lease. `c` has the call's effect and tool.
local function begin_attempt(call, attempt, c, owner, lease_ms)
  redis.call('HSET', trace, call .. ':status', 'running', call .. ':owner', owner, call .. ':lease', now + lease_ms,
    call .. ':started_at', now, unpack(c.effect == 'read_only' and {} or {note_redis(call, attempt)}))
  emit(events, 'call.running', {call = call, tool = c.tool, attempt = attempt})
end

-- Returns what the worker that claimed the call must know. `c` has the call's spec, cap_ms, effect, tool, edited, waits_at and
-- dispatched_at; `t` has its turn's step and brain.
local function call_grant(c, t, remaining_ms)
  local dispatched_at = tonumber(c.dispatched_at) or now
  return c.spec, tonumber(c.cap_ms), remaining_ms, c.effect, c.tool, tonumber(t.step), c.edited or '0', t.brain or '',
    math.max(0, now - dispatched_at), c.waits_at and math.max(0, dispatched_at - tonumber(c.waits_at)) or 0
end
