--[[
Leave all lines. Replies who holds its lanes because of that: they are to be dispatched.

KEYS   holders leases
ARGV   holder lease_ms:n
REPLY  FREED granted...
]]
-- @include lib/now
-- @include lib/lanes
return leave_lines(holders, leases, holder, lease_ms, {'FREED'})
