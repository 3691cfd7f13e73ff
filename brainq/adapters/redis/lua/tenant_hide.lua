--[[
Hide a session of a tenant that is about to move, so that no other script finds it. Its keys, and those of its parked
and waiting turns, get the prefix `moving:`. BUSY means that a turn of it is being worked on; then nothing is hidden.
`session_parts` and `turn_parts` are the endings of the keys.

KEYS   session waiting
ARGV   base session_parts:words turn_parts:words
REPLY  HIDDEN | BUSY turn
]]
local root = base:sub(1, -3)
local turns = redis.call('LRANGE', waiting, 0, -1)
local live = redis.call('HGET', session, 'live')
if live and live ~= '' then turns[#turns + 1] = live end
for _, id in ipairs(turns) do
  local state = redis.call('HGET', base .. id, 'state')
  if state and state ~= 'parked' and state ~= 'queued' then return {'BUSY', id} end
end

local function hide(part)
  if redis.call('EXISTS', root .. part) == 1 then redis.call('RENAMENX', root .. part, root .. 'moving:' .. part) end
end

for _, id in ipairs(turns) do
  for part in turn_parts:gmatch('%S+') do hide('t:' .. id .. (part == '-' and '' or ':' .. part)) end
end
for part in session_parts:gmatch('%S+') do hide(part) end
return {'HIDDEN'}
