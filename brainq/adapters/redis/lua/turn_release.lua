--[[
Release a turn whose owner is alive but cannot continue it, because of trouble that is not the turn's fault. The sweeper
rings for it. CLEARED means that its lease had lapsed in the meantime, and that the turn had been counted as one that
lost its worker.

KEYS   turn
ARGV   sid tid owner fence:n
REPLY  RELEASED | CLEARED | GONE
]]
-- @include lib/fields
-- @include lib/index
-- @include lib/owner_fence
if is_owned_by(turn, owner, fence) then
  redis.call('HSET', turn, 'owner', '', 'rung_at', now)
  look_within(sid, tid, RERING_MS)
  return {'RELEASED'}
end
local t = read(turn, {'lost_owner', 'lost_attempts'})
if t.lost_owner ~= owner then return {'GONE'} end
redis.call('HSET', turn, 'lost_owner', '', 'lost_attempts', math.max(0, tonumber(t.lost_attempts) - 1))
return {'CLEARED'}
