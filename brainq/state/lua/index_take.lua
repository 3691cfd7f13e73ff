--[[
Take up to `most` turns that are due to be looked at, pushed back to `mark` so that sweepers share the work. No look is put
off further than `longest_ms`: one that is has been put off by a clock that stepped back since, and is due.

KEYS   index
ARGV   most:n hold_ms:n longest_ms:n
REPLY  DUE mark stepped:n members...
]]
-- @include lib/now
local mark = string.format('%.0f', now + hold_ms)
local stepped = redis.call('ZRANGEBYSCORE', index, now + longest_ms + 1, '+inf', 'LIMIT', 0, most)
for _, member in ipairs(stepped) do redis.call('ZADD', index, now, member) end
local reply = {'DUE', mark, #stepped}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, most)) do
  redis.call('ZADD', index, mark, member)
  reply[#reply + 1] = member
end
return reply
