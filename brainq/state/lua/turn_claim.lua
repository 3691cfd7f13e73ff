--[[
Take the ownership of a turn for one advance. A doorbell carries the fence it was rung under; only the
newest one gets the turn, and each claim raises the fence. A cancel, or a deadline passed by over 2 s, takes
the turn from whoever holds it or from the calls it awaits; after a cancel the calls that run have `grace_ms` to end.
A turn that lost its worker `most_lost` times since it last went on is given to nobody who works on others, too.

KEYS   turn budget history notices events spends
ARGV   owner fence:n lease_ms:n grace_ms:n most_lost:n
REPLY  GO fence:n now:n | DROP why:TurnState/gone/stale/held/grace/suspect/awaits
]]
-- @include lib/history
-- @include lib/event
-- @include lib/ring
-- @include lib/budget
-- @include lib/cancel
-- @include lib/lost
local held = redis.call('HMGET', turn, 'state', 'fence', 'awaits', 'owner', 'lease_until', 'cancel', 'rung_at',
  'cancel_at', 'lost_attempts')
if not held[1] then return {'DROP', 'gone'} end
if held[1] ~= 'active' then return {'DROP', held[1]} end
if tonumber(held[2]) ~= fence then return {'DROP', 'stale'} end

local deadline = tonumber(redis.call('HGET', budget, 'deadline'))
local interrupt = held[6] == '1' or now > deadline + 2000
if held[6] == '1' and now < tonumber(held[8] or 0) + grace_ms and runs_calls(turn) then return {'DROP', 'grace'} end
if held[4] ~= '' and tonumber(held[5] or 0) > now and not interrupt then return {'DROP', 'held'} end
if held[3] ~= 'coordinator' and not interrupt and now < deadline then return {'DROP', 'awaits'} end

local lost = held[4] ~= '' and tonumber(held[5] or 0) <= now
if not interrupt and now < deadline and (tonumber(held[9]) or 0) + (lost and 1 or 0) >= most_lost then
  return {'DROP', 'suspect'}
end

mark_claimed('turns', held[7])
if lost then note_lost(turn, held[4]) end
if redis.call('HGET', turn, 'thinking') == '1' then
  -- The owner before us died, or was cut off, in the middle of a model call: charge what it may have cost.
  local call = redis.call('HMGET', turn, 'thinking_step', 'estimate', 'estimate_usd')
  charge_lost(budget, spends, call[1], call[2], call[3])
  redis.call('HSET', turn, 'thinking', '0')
end
local aux = redis.call('HMGET', turn, 'aux_open', 'step', 'aux_tokens', 'aux_usd')
if aux[1] and aux[1] ~= '' then
  charge_lost(budget, spends, aux[2], aux[3], aux[4])
  redis.call('HSET', turn, 'aux_open', '')
end
redis.call('HSET', turn, 'fence', fence + 1, 'owner', owner, 'lease_until', now + lease_ms)
while held[3] == 'coordinator' and not isolated and redis.call('LMOVE', notices, history, 'LEFT', 'RIGHT') do end
return {'GO', fence + 1, now}
