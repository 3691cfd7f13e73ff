--[[
Keys of a session that were hidden have their names again: in the cell that its tenant moved to, or, where the move was
undone, in the one that it stayed in. `hidden` are whole names; one that is gone is left out. `awaits` are its turns that
are parked or wait: they are looked at soon.

KEYS   session
ARGV   sid base awaits:words hidden...
REPLY  SHOWN
]]
-- @include lib/index
local root = base:sub(1, -3)
for _, key in ipairs(hidden) do
  if redis.call('EXISTS', key) == 1 then redis.call('RENAME', key, root .. key:sub(#root + 8)) end
end
for id in awaits:gmatch('%S+') do
  if redis.call('EXISTS', base .. id) == 1 then look_within(sid, id, SOON_MS) end
end
return {'SHOWN'}
