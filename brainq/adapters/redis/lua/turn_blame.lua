--[[
A process in quarantine that worked on this turn has died, or stopped answering, with `among` turns in it. `process` ends
the owner's name, `how` says how it died. Where nothing else was in it the turn did it. Else any of them may have: how many
they were is noted, by which they go on in smaller groups (`processes/pool.py`), and none is counted a lost worker. The
turn is rung for at once.

KEYS   turn
ARGV   sid tid process how among:n
REPLY  BLAMED died:n | GONE
]]
-- @include lib/fields
-- @include lib/now
-- @include lib/ring
local t = read(turn, {'state', 'owner', 'lost_owner', 'fence', 'died_alone'})
local function was_its(owner) return owner and owner:sub(-#process) == process end
if t.state ~= 'active' then return {'GONE'} end
local is_sole = among <= 1
if was_its(t.owner) then
  if is_sole then redis.call('HINCRBY', turn, 'lost_attempts', 1) end
  redis.call('HSET', turn, 'owner', '', 'lost_owner', '', 'rung_at', now)
  ring_anew('turns', sid, tid, 'advance.' .. t.fence, {sid, tid, tonumber(t.fence)}, tid)
elseif was_its(t.lost_owner) then
  if not is_sole then redis.call('HINCRBY', turn, 'lost_attempts', -1) end
  redis.call('HSET', turn, 'lost_owner', '')
else
  return {'GONE'}
end
redis.call('HSET', turn, 'died_how', how, 'died_among', among)
return {'BLAMED', is_sole and redis.call('HINCRBY', turn, 'died_alone', 1) or tonumber(t.died_alone or 0)}
