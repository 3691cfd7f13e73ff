--[[
A process that worked on this turn and on nothing else has died: the turn did it. `process` ends the owner's name, `how`
says how it died. The turn is rung for again at once.

KEYS   turn
ARGV   sid tid process how
REPLY  BLAMED died:n | GONE
]]
-- @include lib/now
-- @include lib/ring
local held = redis.call('HMGET', turn, 'state', 'owner', 'lost_owner', 'fence')
local function was_its(owner) return owner and owner:sub(-#process) == process end
if held[1] ~= 'active' then return {'GONE'} end
if was_its(held[2]) then
  redis.call('HINCRBY', turn, 'lost_attempts', 1)
  redis.call('HSET', turn, 'owner', '', 'lost_owner', '', 'rung_at', now)
  ring_anew('turns', sid, tid, 'advance.' .. held[4], {sid, tid, tonumber(held[4])}, tid)
elseif was_its(held[3]) then
  redis.call('HSET', turn, 'lost_owner', '')
else
  return {'GONE'}
end
redis.call('HSET', turn, 'died_how', how)
return {'BLAMED', redis.call('HINCRBY', turn, 'died_alone', 1)}
