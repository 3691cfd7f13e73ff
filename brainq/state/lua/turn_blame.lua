--[[
A process that worked on this turn and on nothing else has died: the turn did it. `process` ends the owner's name, `how`
says how it died. The turn is rung for again at once.

KEYS   turn
ARGV   sid tid process how
REPLY  BLAMED died:n | GONE
]]
-- @include lib/fields
-- @include lib/now
-- @include lib/ring
local t = read(turn, {'state', 'owner', 'lost_owner', 'fence'})
local function was_its(owner) return owner and owner:sub(-#process) == process end
if t.state ~= 'active' then return {'GONE'} end
if was_its(t.owner) then
  redis.call('HINCRBY', turn, 'lost_attempts', 1)
  redis.call('HSET', turn, 'owner', '', 'lost_owner', '', 'rung_at', now)
  ring_anew('turns', sid, tid, 'advance.' .. t.fence, {sid, tid, tonumber(t.fence)}, tid)
elseif was_its(t.lost_owner) then
  redis.call('HSET', turn, 'lost_owner', '')
else
  return {'GONE'}
end
redis.call('HSET', turn, 'died_how', how)
return {'BLAMED', redis.call('HINCRBY', turn, 'died_alone', 1)}
