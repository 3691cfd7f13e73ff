--[[
Renew the lease of a finalizer step.

KEYS   turn
ARGV   fence:n lease_ms:n
REPLY  OK | LOST
]]
-- @include lib/now
-- @include lib/chain
if not step_held(turn, fence, {}) then return {'LOST'} end
redis.call('HSET', turn, 'fin_lease', now + lease_ms)
return {'OK'}
