--[[
Take up to `most` turns that are due to be looked at, pushed back by `hold_ms` so that sweepers share the work.

KEYS   index
ARGV   most:n hold_ms:n
REPLY  DUE now member...
]]
-- @include lib/now
local reply = {'DUE', now}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, most)) do
  redis.call('ZADD', index, now + hold_ms, member)
  reply[#reply + 1] = member
end
return reply
