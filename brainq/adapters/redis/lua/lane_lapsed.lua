--[[
Take up to `most` holders whose lease has lapsed, to ask their calls whether the lanes are still needed.
They are pushed back by `hold_ms`, so that sweepers share the work. The mark they get is not a lease that a beat could
have written (those are whole), and below any that is taken from now on: lane_check frees a holder only while it still
has it. A lease further ahead than any lasts was written before the clock stepped back, and ends as one from now on.

KEYS   leases
ARGV   most:n hold_ms:n longest_lease_ms:n
REPLY  LAPSED mark holders...
]]
-- @include lib/now
local mark = string.format('%.1f', now + hold_ms - 0.5)
local reply = {'LAPSED', mark}
for _, holder in ipairs(redis.call('ZRANGEBYSCORE', leases, now + longest_lease_ms + 1000, '+inf', 'LIMIT', 0, most)) do
  redis.call('ZADD', leases, now + longest_lease_ms, holder)
end
for _, holder in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, most)) do
  redis.call('ZADD', leases, mark, holder)
  reply[#reply + 1] = holder
end
return reply
