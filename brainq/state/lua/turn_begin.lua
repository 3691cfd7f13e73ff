--[[
Put the user's message (the last item) into the session's history, once a turn, and note its place, counted
from the session's first message on: what is trimmed away in front is counted in `trimmed`. A history that begins
here gets a new `history_stamp`: what a process knows of another one under this key is void. `earlier` turns of a
session that Redis has let go of are counted on.

KEYS   turn history session
ARGV   owner fence:n prompt_hash earlier:n items...
REPLY  BEGUN | ALREADY | LOST
]]
-- @include lib/now
-- @include lib/history
-- @include lib/holds
if not holds(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'begun') == '1' then return {'ALREADY'} end
redis.call('PERSIST', history)
local held = redis.call('LLEN', history)
local counted = isolated and turn or session
if held == 0 then
  redis.call('HSET', counted, 'trimmed', 0)
  -- Never one that it had: the time alone may not have moved.
  if redis.call('HSETNX', counted, 'history_stamp', now) == 0 then redis.call('HINCRBY', counted, 'history_stamp', 1) end
end
local begin_at = held + #items - 1 + (tonumber(redis.call('HGET', counted, 'trimmed')) or 0)
for _, item in ipairs(items) do redis.call('RPUSH', history, item) end
if earlier > 0 then redis.call('HSETNX', session, 'turns', earlier) end
local number = redis.call('HINCRBY', session, 'turns', 1)
redis.call('HSET', turn, 'begun', '1', 'begin_at', begin_at, 'number', number, 'prompt_hash', prompt_hash)
return {'BEGUN'}
