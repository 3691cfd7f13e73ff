--[[
The lease of a call's lanes has lapsed: they are kept for a call that is queued or runs, and left by one that is over,
unless its lease was renewed since a sweeper found it with this `mark`: an abandoned function of it may be beating. Only
that of a queued call is renewed here: of one that runs it would seem that its process lives.

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
