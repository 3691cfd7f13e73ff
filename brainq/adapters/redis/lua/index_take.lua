--[[
Take up to `most` turns that are due for a check. They are postponed by `hold_ms`, so that sweepers share the work.
`swept` is the time of the last such call. If Redis' clock has stepped back since then, all checks are moved forward by
the difference.

KEYS   index swept
ARGV   most:n hold_ms:n
REPLY  DUE stepped:n members...
]]
-- @include lib/now
local ROOM_MS, DAY_MS = 1000, 86400000
local back_ms = tonumber(redis.call('GET', swept) or 0) - now
local stepped = {}
if back_ms > ROOM_MS then stepped = redis.call('ZRANGEBYSCORE', index, '(' .. now, '+inf', 'WITHSCORES') end
for i = 1, #stepped, 2 do redis.call('ZINCRBY', index, -back_ms, stepped[i]) end
redis.call('SET', swept, now, 'PX', DAY_MS)
local due = redis.call('ZRANGEBYSCORE', index, '-inf', now, 'LIMIT', 0, most)
local held = {}
for _, member in ipairs(due) do
  held[#held + 1] = now + hold_ms
  held[#held + 1] = member
end
if #due > 0 then redis.call('ZADD', index, unpack(held)) end
return {'DUE', #stepped / 2, unpack(due)}
