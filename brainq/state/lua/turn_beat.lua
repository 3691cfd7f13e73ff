--[[
Renew the lease of a turn.

KEYS   turn
ARGV   owner fence:n lease_ms:n
REPLY  OK | CANCEL | LOST
]]
-- @include lib/now
-- @include lib/holds
if not holds(turn, owner, fence) then return {'LOST'} end
redis.call('HSET', turn, 'lease_until', now + lease_ms)
if redis.call('HGET', turn, 'cancel') == '1' then return {'CANCEL'} end
return {'OK'}
