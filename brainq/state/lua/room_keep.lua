--[[
Say how large the room is and what a tenant's share of it is, take turns out of it that are not live (they were lost, not ended), and let in who waits. `own`
are the shares of tenants that have one of their own, as JSON. Places are looked at `most` at a time, each time the next ones.

KEYS   room
ARGV   size:n share:n own most:n keep_ms:n
REPLY  KEPT live:n asked:words
]]
-- @include lib/fill
redis.call('HSET', room, 'all', size, 'tenant', share)
local shares = cjson.decode(own)
for _, name in ipairs(redis.call('HKEYS', room)) do
  if name:sub(-1) == ':' and not shares[name] then redis.call('HDEL', room, name) end
end
for name, most_live in pairs(shares) do redis.call('HSET', room, name, most_live) end

local from = redis.call('HGET', room, 'from')
local places = redis.call('ZRANGEBYLEX', ROOM_LIVE, from and '(' .. from or '-', '+', 'LIMIT', 0, most)
if #places == most then redis.call('HSET', room, 'from', places[most]) else redis.call('HDEL', room, 'from') end
for _, place in ipairs(places) do
  local its_sid, its_tid = place:match('^:?(%S+) (%S+)$')
  local state = redis.call('HGET', OUTBOX_PREFIX .. '{' .. its_sid .. '}:t:' .. its_tid, 'state')
  if state ~= 'active' then leave_room(its_sid, its_tid) end
end
redis.call('PEXPIRE', room, keep_ms)
for _, name in ipairs(redis.call('ZRANGE', ROOM_CAPPED, 0, most - 1)) do rotate_in(name) end
local asked = fill_room(nil)
return {'KEPT', redis.call('ZCARD', ROOM_LIVE), table.concat(asked, ' ')}
