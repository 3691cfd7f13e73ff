--[[
Renew the lease of a finalizer step.

KEYS   turn
ARGV   fence:n lease_ms:n
REPLY  OK | LOST
]]
-- @include lib/now
local held = redis.call('HMGET', turn, 'fin_fence', 'fin_owner')
if tonumber(held[1] or -1) ~= fence or held[2] == '' then return {'LOST'} end
redis.call('HSET', turn, 'fin_lease', now + lease_ms)
return {'OK'}
