--[[
The lease of a call's lanes has lapsed: they are kept for a call that is queued or runs, and left by one that is over,
unless its lease was renewed since a sweeper found it with this `mark`: an abandoned function of it may be beating.

KEYS   turn budget trace history events guard
ARGV   sid tid call mark lease_ms:n
REPLY  KEPT | LEFT
]]
-- @include lib/waves
local holder = holder_of(call)
local until_ms = redis.call('ZSCORE', LEASES, holder)
if not until_ms or tonumber(until_ms) ~= tonumber(mark) then return {'KEPT'} end
local status = redis.call('HGET', trace, call .. ':status')
if status == 'dispatched' or status == 'running' then
  redis.call('ZADD', LEASES, now + lease_ms, holder)
  return {'KEPT'}
end
leave_lanes(call)
return {'LEFT'}
