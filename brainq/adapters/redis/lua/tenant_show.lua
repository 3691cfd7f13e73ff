--[[
Give the hidden keys of a session their names again, in the cell that its tenant moved to, or in its old cell if the
move was undone. `hidden` are whole names; a key that is gone is skipped. `awaits` are its parked and waiting turns,
which are checked soon.

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
