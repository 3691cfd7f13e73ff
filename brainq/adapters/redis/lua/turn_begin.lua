--[[
Add the user's message (the last item) to the session's history, once per turn, and record its position, counted from
the session's first message. `trimmed` counts the messages that were removed in front. A history that begins here gets a
new `history_stamp`, which invalidates what a process knows of an earlier history under this key. `earlier` is the
number of turns of a session that Redis has dropped; the count continues from it.

KEYS   turn history session
ARGV   owner fence:n prompt_hash earlier:n items...
REPLY  BEGUN | ALREADY | LOST
]]
-- @include lib/now
-- @include lib/own_history
-- @include lib/owner_fence
local t = read(turn, {'state', 'owner', 'fence', 'begun', 'isolated'})
if not is_owner(t, owner, fence) then return {'LOST'} end
if t.begun == '1' then return {'ALREADY'} end
use_own_history(t.isolated)
local length, counted = push(history, items), isolated and turn or session
local c = read(counted, {'trimmed', 'history_stamp'})
if length == #items then
  -- It must differ from earlier stamps, and the time alone may not have moved.
  local stamp = c.history_stamp and c.history_stamp + 1 or now
  redis.call('HSET', counted, 'trimmed', 0, 'history_stamp', stamp)
  c.trimmed = 0
else
  redis.call('PERSIST', history)
end
if earlier > 0 then redis.call('HSETNX', session, 'turns', earlier) end
local number = redis.call('HINCRBY', session, 'turns', 1)
redis.call('HSET', turn, 'begun', '1', 'begin_at', length - 1 + (tonumber(c.trimmed) or 0), 'number', number,
  'prompt_hash', prompt_hash)
return {'BEGUN'}
