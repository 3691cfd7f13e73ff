--[[
Make an accepted turn known to Redis: live if its session is idle, else last in the session's queue.
Running it again changes nothing.

KEYS   session waiting turn spec budget events
ARGV   sid tid spec_json timeout_ms max_steps max_tool_calls max_reflections max_context_tokens max_total_tokens max_cost_usd lost_reason
REPLY  ACTIVE | QUEUED ahead | EXISTS state
]]
-- @include lib/activate
local state = redis.call('HGET', turn, 'state')
if state then return {'EXISTS', state} end

redis.call('SET', spec, spec_json)
redis.call('HSET', budget, 'timeout_ms', timeout_ms, 'steps_max', max_steps, 'tool_calls_max', max_tool_calls,
  'reflections_max', max_reflections, 'max_context_tokens', max_context_tokens,
  'tokens_max', max_total_tokens, 'cost_max_usd', max_cost_usd)
redis.call('HSET', turn, 'state', 'queued', 'awaits', 'session', 'sid', sid, 'tid', tid, 'created_at', now,
  'fence', 0, 'step', 0, 'attempt', 0, 'owner', '', 'write_epoch', 0, 'lost_reason', lost_reason)

local live = redis.call('HGET', session, 'live')
if live and live ~= '' then
  local ahead = redis.call('RPUSH', waiting, tid)
  emit(turn, events, 'turn.queued', {ahead = ahead})
  return {'QUEUED', ahead}
end
activate(session, turn, budget, events, sid, tid)
return {'ACTIVE'}
