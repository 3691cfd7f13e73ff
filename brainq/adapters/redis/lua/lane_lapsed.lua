--[[
Take up to `most` holders whose lease has lapsed, so that their calls can be checked. They are postponed by `hold_ms`,
so that sweepers share the work. The mark that they get cannot be a lease written by a beat, because leases are whole
numbers, and it is lower than any lease taken from now on. lane_check frees a holder only while it still has this mark.
A lease longer than any lease can be was written before the clock stepped back, and is shortened to a full one from now.

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
