--[[
Let the session's turns begin again: the first that waits does at once, when none is live.

KEYS   session waiting flags readiness
ARGV   base sid
REPLY  RESUMED turn | ALREADY
]]
-- @include lib/activate
local held = redis.call('HMGET', session, 'paused', 'live')
if held[1] ~= '1' then return {'ALREADY'} end
redis.call('HDEL', session, 'paused')
if held[2] and held[2] ~= '' then return {'RESUMED', ''} end
local next_turn = redis.call('LPOP', waiting)
if not next_turn then return {'RESUMED', ''} end
local key = base .. next_turn
activate(session, key, key .. ':budget', key .. ':events', flags, readiness, sid, next_turn)
return {'RESUMED', next_turn}
