-- Make a queued turn its session's live one: its deadline starts now, and its coordinator is rung.
-- @include lib/event
-- @include lib/ring
local function activate(session_key, turn_key, budget_key, events_key, sid, tid)
  local timeout_ms = tonumber(redis.call('HGET', budget_key, 'timeout_ms'))
  redis.call('HSET', budget_key, 'deadline', now + timeout_ms)
  redis.call('HSET', turn_key, 'state', 'active', 'awaits', 'coordinator', 'active_at', now, 'rung_at', now)
  redis.call('HSET', session_key, 'live', tid)
  redis.call('PERSIST', session_key)
  emit(turn_key, events_key, 'turn.active', {deadline_in_ms = timeout_ms})
  local fence = tonumber(redis.call('HGET', turn_key, 'fence'))
  ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
end
