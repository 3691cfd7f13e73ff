--[[
Renew the lease of a turn. `under_way` is the usage so far of the model call in progress, as in step_delta.

KEYS   turn
ARGV   owner fence:n lease_ms:n under_way
REPLY  OK | CANCEL | LOST
]]
-- @include lib/now
-- @include lib/owner_fence
if not is_owned_by(turn, owner, fence) then return {'LOST'} end
redis.call('HSET', turn, 'lease_until', now + lease_ms, unpack(under_way ~= '' and {'under_way', under_way} or {}))
if redis.call('HGET', turn, 'cancel') == '1' then return {'CANCEL'} end
return {'OK'}
