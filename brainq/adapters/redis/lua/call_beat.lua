--[[
Renew the lease of a running call and of its lanes, or report that the call is no longer wanted. Lanes that were taken
from the call while its process was frozen are not taken back: the call's own lease decides what becomes of it.

KEYS   turn trace leases
ARGV   sid tid owner call attempt:n lease_ms:n
REPLY  OK | CLOSED | LOST
]]
-- @include lib/now
-- @include lib/lease
local why = look_at_call()
if why then return {why == 'closed' and 'CLOSED' or 'LOST'} end
renew_call()
redis.call('ZADD', leases, 'XX', now + lease_ms, sid .. ' ' .. tid .. ' ' .. call)
return {'OK'}
