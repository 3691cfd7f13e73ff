--[[
Keep the lanes of a call whose function still runs, even after the call was settled.

KEYS   leases
ARGV   holder lease_ms:n
REPLY  OK | LOST
]]
-- @include lib/now
if not redis.call('ZSCORE', leases, holder) then return {'LOST'} end
redis.call('ZADD', leases, 'XX', now + lease_ms, holder)
return {'OK'}
