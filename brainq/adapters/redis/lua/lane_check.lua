--[[
Handle a lapsed lease of a call's lanes. The lanes are kept if the call is queued or running. They are left if the call
is over, unless the lease was renewed after a sweeper found it with this `mark`, because an abandoned function may be
beating. Only the lease of a queued call is renewed here: for a running call, a renewal would look as if its process
were alive.

KEYS   turn budget trace history events guard
ARGV   sid tid call mark lease_ms:n
REPLY  KEPT | LEFT
]]
-- @include lib/waves
local holder = holder_of(call)
local until_ms = redis.call('ZSCORE', LEASES, holder)
if not until_ms or tonumber(until_ms) ~= tonumber(mark) then return {'KEPT'} end
local status = redis.call('HGET', trace, call .. ':status')
if status == 'dispatched' then redis.call('ZADD', LEASES, now + lease_ms, holder) end
if status == 'dispatched' or status == 'running' then return {'KEPT'} end
leave_lanes(call)
return {'LEFT'}
