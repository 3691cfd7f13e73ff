-- Resume a parked turn, whether there is capacity or not. Its deadline moves by the time that it was parked.
-- @include lib/event
-- @include lib/fields
-- @include lib/index
-- @include lib/capacity
-- @lazy
local function resume_turn(turn_key, budget_key, events_key, awaits)
  local t = read(turn_key, {'state', 'parked_at', 'sid', 'tid', 'brain'})
  if t.state ~= 'parked' then return end
  local parked_ms = math.max(0, now - tonumber(t.parked_at)) -- Redis' clock may have stepped back
  redis.call('HSET', turn_key, 'state', 'active', 'awaits', awaits)
  add_live(t.sid, t.tid, t.brain)
  redis.call('HINCRBY', turn_key, 'parked_ms', parked_ms)
  redis.call('HINCRBY', budget_key, 'deadline', parked_ms)
  look_within(t.sid, t.tid, RERING_MS)
  emit(events_key, 'turn.resumed', {parked_ms = parked_ms})
end
