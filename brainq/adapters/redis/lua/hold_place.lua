--[[
Place a hold on a turn. From now on no call with effects starts in it. `hold_kind` is `hold`, or `readiness` for a flag
that the turn took before Redis lost the hold made from it.

KEYS   turn events
ARGV   sid tid hold timeout_ms:n policy:HoldPolicy reason hold_kind:hold/readiness
REPLY  HELD | ALREADY | ENDED state:TurnState | GONE
]]
-- @include lib/event
-- @include lib/fields
-- @include lib/index
local t = read(turn, {'state', 'holds'})
if not t.state then return {'GONE'} end
if t.state ~= 'queued' and t.state ~= 'active' and t.state ~= 'parked' then return {'ENDED', t.state} end
local holds = t.holds and t.holds ~= '' and cjson.decode(t.holds) or {}
if holds[hold] then return {'ALREADY'} end
holds[hold] = {ends = now + timeout_ms, policy = policy, reason = reason, kind = hold_kind}
redis.call('HSET', turn, 'holds', cjson.encode(holds))
if hold_kind == 'readiness' then redis.call('HSET', turn, 'readiness', hold) end
look_within(sid, tid, timeout_ms + 1)
emit(events, 'hold.placed', {hold = hold, reason = reason, kind = hold_kind})
return {'HELD'}
