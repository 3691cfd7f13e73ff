--[[
Put the user's message into the session's history, once a turn, and note where this turn's part begins.

KEYS   turn history session
ARGV   owner fence:n context_hash items...
REPLY  BEGUN | ALREADY | LOST
]]
-- @include lib/holds
if not holds(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'begun') == '1' then return {'ALREADY'} end
redis.call('PERSIST', history)
for i = 4, #ARGV do redis.call('RPUSH', history, ARGV[i]) end
redis.call('HINCRBY', session, 'turns', 1)
redis.call('HSET', turn, 'begun', '1', 'context_hash', context_hash)
return {'BEGUN'}
