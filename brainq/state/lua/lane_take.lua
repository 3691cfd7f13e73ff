--[[
Take all lanes of a call, or wait in line for them. Every lane is a line; a call holds its lanes when it is
first in all of them. It joins all its lines in one step, so lines never cross and nobody waits in a circle.

KEYS   holders leases lanes...
ARGV   holder lease_ms:n
REPLY  GRANTED | WAITING
]]
-- @include lib/now
-- @include lib/lanes
if redis.call('HEXISTS', holders, holder) == 0 then
  for _, lane in ipairs(lanes) do redis.call('RPUSH', lane, holder) end
  redis.call('HSET', holders, holder, cjson.encode(lanes))
end
if not is_first(holders, holder) then return {'WAITING'} end
redis.call('ZADD', leases, 'GT', now + lease_ms, holder)
return {'GRANTED'}
