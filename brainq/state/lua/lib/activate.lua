-- Make a queued turn its session's live one: its deadline starts now, it takes the oldest readiness flag unless it
-- was submitted with a word of its own on readiness, and its coordinator is rung.
-- @include lib/event
-- @include lib/ring
-- @include lib/index

local function hold_until_ready(turn_key, events_key, id, hold)
  local holds = redis.call('HGET', turn_key, 'holds')
  holds = holds and holds ~= '' and cjson.decode(holds) or {}
  holds[id] = {ends = now + hold.timeout_ms, policy = hold.policy, reason = hold.reason, kind = 'readiness'}
  redis.call('HSET', turn_key, 'holds', cjson.encode(holds), 'readiness', id)
  emit(turn_key, events_key, 'hold.placed', {hold = id, reason = hold.reason, kind = 'readiness'})
end

-- A flag that is not ready yet becomes a hold of the turn. Where there is none the turn is ready.
local function take_flag(turn_key, events_key, flags_key, readiness_key, tid)
  local flag = redis.call('LPOP', readiness_key)
  if not flag then return end
  local text = redis.call('HGET', flags_key, flag)
  if not text then return end
  local known = cjson.decode(text)
  redis.call('HSET', turn_key, 'flag', flag)
  if known.ready then
    redis.call('HDEL', flags_key, flag)
    return
  end
  known.turn = tid
  redis.call('HSET', flags_key, flag, cjson.encode(known))
  hold_until_ready(turn_key, events_key, flag, known)
end

local function activate(session_key, turn_key, budget_key, events_key, flags_key, readiness_key, sid, tid)
  local timeout_ms = tonumber(redis.call('HGET', budget_key, 'timeout_ms'))
  redis.call('HSET', budget_key, 'deadline', now + timeout_ms)
  redis.call('HSET', turn_key, 'state', 'active', 'awaits', 'coordinator', 'active_at', now, 'rung_at', now)
  redis.call('HSET', session_key, 'live', tid)
  redis.call('PERSIST', session_key)
  redis.call('PERSIST', flags_key)
  redis.call('PERSIST', readiness_key)
  emit(turn_key, events_key, 'turn.active', {deadline_in_ms = timeout_ms})
  local told = redis.call('HMGET', turn_key, 'kind', 'said', 'flag')
  if told[2] and told[2] ~= '' then
    if told[2] ~= 'ready' then
      local hold = cjson.decode(told[2])
      hold_until_ready(turn_key, events_key, hold.id, hold)
    end
  elseif told[1] == 'chat' and not told[3] then
    take_flag(turn_key, events_key, flags_key, readiness_key, tid)
  end
  local fence = tonumber(redis.call('HGET', turn_key, 'fence'))
  look_within(sid, tid, RERING_MS)
  ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
end
