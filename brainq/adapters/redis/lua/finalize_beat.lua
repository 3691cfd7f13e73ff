--[[
Renew the lease of a finalizer step.

KEYS   turn
ARGV   fence:n lease_ms:n
REPLY  OK | LOST
]]
-- @include lib/now
-- @include lib/chain
local t = read(turn, {'fin_fence', 'fin_owner'})
if not holds_step(t, fence) then return {'LOST'} end
redis.call('HSET', turn, 'fin_lease', now + lease_ms)
return {'OK'}
