--[[
Place a hold on a turn: from now on no call that changes something starts in it. `hold_kind` is `hold`, or `readiness` for
a flag that the turn took before Redis lost the hold it became.

KEYS   turn events
ARGV   sid tid hold timeout_ms:n policy:HoldPolicy reason hold_kind:hold/readiness
REPLY  HELD | ALREADY | ENDED state:TurnState | GONE
]]
-- @include lib/event
-- @include lib/index
local held = redis.call('HMGET', turn, 'state', 'holds')
if not held[1] then return {'GONE'} end
if held[1] ~= 'queued' and held[1] ~= 'active' and held[1] ~= 'parked' then return {'ENDED', held[1]} end
local holds = held[2] and held[2] ~= '' and cjson.decode(held[2]) or {}
if holds[hold] then return {'ALREADY'} end
holds[hold] = {ends = now + timeout_ms, policy = policy, reason = reason, kind = hold_kind}
redis.call('HSET', turn, 'holds', cjson.encode(holds))
if hold_kind == 'readiness' then redis.call('HSET', turn, 'readiness', hold) end
look_within(sid, tid, timeout_ms + 1)
emit(events, 'hold.placed', {hold = hold, reason = reason, kind = hold_kind})
return {'HELD'}
