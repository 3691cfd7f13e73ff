--[[
Leave all lines of a holder whose lease lapsed, unless the lease was renewed since: between a sweeper's look at it and
this script its call may have started, or an abandoned function of it may be beating.

KEYS   holders leases
ARGV   holder mark lease_ms:n
REPLY  FREED granted... | KEPT
]]
-- @include lib/now
-- @include lib/lanes
local until_ms = redis.call('ZSCORE', leases, holder)
if not until_ms or tonumber(until_ms) ~= tonumber(mark) then return {'KEPT'} end
return leave_lines(holders, leases, holder, lease_ms, {'FREED'})
