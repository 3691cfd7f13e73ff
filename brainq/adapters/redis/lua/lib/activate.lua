-- Make a queued turn the live turn of its session, whether there is capacity or not. Its deadline starts now, it takes
-- the oldest readiness flag unless its submit set its readiness, and its coordinator is rung.
-- @include lib/fields
-- @include lib/event
-- @include lib/ring
-- @include lib/index
-- @include lib/capacity

local function hold_until_ready(turn_key, events_key, id, hold)
  local holds = redis.call('HGET', turn_key, 'holds')
  holds = holds and holds ~= '' and cjson.decode(holds) or {}
  holds[id] = {ends = now + hold.timeout_ms, policy = hold.policy, reason = hold.reason, kind = 'readiness'}
  redis.call('HSET', turn_key, 'holds', cjson.encode(holds), 'readiness', id)
  emit(events_key, 'hold.placed', {hold = id, reason = hold.reason, kind = 'readiness'})
end

-- Take a readiness flag for the turn. A flag that is not ready yet becomes a hold. Without a flag the turn is ready.
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

-- The turn's fields already have the state `active`. `t` has its kind, said, flag, fence, brain and timeout_ms.
-- @lazy
local function make_live(session_key, turn_key, events_key, flags_key, readiness_key, sid, tid, t)
  redis.call('HSET', session_key, 'live', tid)
  redis.call('PERSIST', session_key)
  add_live(sid, tid, t.brain)
  local has_flags = redis.call('EXISTS', flags_key, readiness_key) > 0
  if has_flags then
    redis.call('PERSIST', flags_key)
    redis.call('PERSIST', readiness_key)
  end
  emit(events_key, 'turn.active', {deadline_in_ms = t.timeout_ms})
  if t.said and t.said ~= '' then
    if t.said ~= 'ready' then
      local hold = cjson.decode(t.said)
      hold_until_ready(turn_key, events_key, hold.id, hold)
    end
  elseif has_flags and t.kind == 'chat' and not t.flag then
    take_flag(turn_key, events_key, flags_key, readiness_key, tid)
  end
  local fence = tonumber(t.fence)
  look_within(sid, tid, RERING_MS)
  ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
end

-- @lazy
local function activate(session_key, turn_key, budget_key, events_key, flags_key, readiness_key, sid, tid)
  local t = read(turn_key, {'kind', 'said', 'flag', 'fence', 'brain'})
  t.timeout_ms = tonumber(redis.call('HGET', budget_key, 'timeout_ms'))
  redis.call('HSET', budget_key, 'deadline', now + t.timeout_ms)
  redis.call('HSET', turn_key, 'state', 'active', 'awaits', 'coordinator', 'active_at', now, 'rung_at', now)
  make_live(session_key, turn_key, events_key, flags_key, readiness_key, sid, tid, t)
end
