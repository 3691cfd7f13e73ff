--[[
Record that a process in quarantine that worked on this turn has died or stopped answering, with `among` turns in it.
`process` is the end of the owner's name, and `how` says how it died. If the turn was alone in it, the turn is the
cause. Otherwise any of them may be: their number is recorded, by which they continue in smaller groups
(`processes/pool.py`), and no lost worker is counted. The turn is rung for at once.

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
