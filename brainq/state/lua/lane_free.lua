--[[
Leave all lines. Replies who holds its lanes because of that: they are to be dispatched.

KEYS   holders leases
ARGV   holder lease_ms:n
REPLY  FREED granted...
]]
-- @include lib/now
-- @include lib/lanes
local lines = redis.call('HGET', holders, holder)
if not lines then return {'FREED'} end
redis.call('HDEL', holders, holder)
redis.call('ZREM', leases, holder)
local reply, seen = {'FREED'}, {}
for _, line in ipairs(cjson.decode(lines)) do
  redis.call('LREM', line, 0, holder)
  local first = redis.call('LINDEX', line, 0)
  if first and not seen[first] and is_first(holders, first) then
    seen[first] = true
    if not redis.call('ZSCORE', leases, first) then
      redis.call('ZADD', leases, now + lease_ms, first)
      reply[#reply + 1] = first
    end
  end
end
return reply
