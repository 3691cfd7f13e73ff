--[[
Ask for a turn to be cancelled. One that still waits for its session ends at once; a live one is marked, and
its coordinator rung: the mark outlives every process.

KEYS   waiting turn events
ARGV   sid tid reason first_step
REPLY  CANCELLED | REQUESTED | ENDED state | GONE
]]
-- @include lib/finalize
local held = redis.call('HMGET', turn, 'state', 'cancel', 'fence')
if not held[1] then return {'GONE'} end
if held[1] == 'queued' then
  redis.call('LREM', waiting, 1, tid)
  redis.call('HSET', turn, 'cancel', '1')
  close_turn(turn, events, sid, tid, 'cancelled', 'cancelled', '', reason, first_step)
  return {'CANCELLED'}
end
if held[1] ~= 'active' and held[1] ~= 'parked' then return {'ENDED', held[1]} end
if held[2] ~= '1' then
  redis.call('HSET', turn, 'cancel', '1', 'cancel_at', now, 'cancel_reason', reason, 'rung_at', now)
  local fence = tonumber(held[3])
  ring('turns', sid, tid, 'cancel.' .. fence, {sid, tid, fence}, tid)
end
return {'REQUESTED'}
