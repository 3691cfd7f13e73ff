--[[
Take up to `most` holders whose lease has lapsed, to ask their calls whether the lanes are still needed.
They are pushed back by `hold_ms`, so that sweepers share the work.

KEYS   leases
ARGV   most:n hold_ms:n
REPLY  LAPSED holder...
]]
-- @include lib/now
local reply = {'LAPSED'}
for _, holder in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, most)) do
  redis.call('ZADD', leases, now + hold_ms, holder)
  reply[#reply + 1] = holder
end
return reply
