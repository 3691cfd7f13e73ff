--[[
Check for the last time, before the function of a write is called and after its intent is stored, that the call is still
wanted and still holds its lanes. Renews both leases.

KEYS   turn trace leases
ARGV   sid tid owner call attempt:n lease_ms:n
REPLY  OK | CLOSED | LOST
]]
-- @include lib/now
-- @include lib/lease
local why, lanes = look_at_call()
if why then return {why == 'closed' and 'CLOSED' or 'LOST'} end
if lanes ~= '[]' then
  local holder = sid .. ' ' .. tid .. ' ' .. call
  if not redis.call('ZSCORE', leases, holder) then return {'LOST'} end
  redis.call('ZADD', leases, now + lease_ms, holder)
end
renew_call(call .. ':begun', attempt) -- read by call_unstarted
return {'OK'}
