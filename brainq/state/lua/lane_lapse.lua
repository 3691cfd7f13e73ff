--[[
Let the lease of a call's lanes lapse now. A sweeper looks at the call then, and leaves the lanes only if it neither
waits nor runs: so this does no harm whenever it comes.

KEYS   leases
ARGV   holder
REPLY  LAPSED | ABSENT
]]
-- @include lib/now
if not redis.call('ZSCORE', leases, holder) then return {'ABSENT'} end
redis.call('ZADD', leases, 'XX', now, holder)
return {'LAPSED'}
