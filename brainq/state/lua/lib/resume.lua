-- A parked turn goes on: its deadline moves by as long as it stood still.
-- @include lib/event
-- @include lib/index
local function resume_turn(turn_key, budget_key, events_key, awaits)
  local held = redis.call('HMGET', turn_key, 'state', 'parked_at', 'sid', 'tid')
  if held[1] ~= 'parked' then return end
  local parked_ms = math.max(0, now - tonumber(held[2])) -- Redis' clock may have stepped back
  redis.call('HSET', turn_key, 'state', 'active', 'awaits', awaits)
  redis.call('HINCRBY', turn_key, 'parked_ms', parked_ms)
  redis.call('HINCRBY', budget_key, 'deadline', parked_ms)
  look_within(held[3], held[4], RERING_MS)
  emit(events_key, 'turn.resumed', {parked_ms = parked_ms})
end
