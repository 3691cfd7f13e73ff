--[[
Let the session's turns begin again: the first that waits does at once, when none is live.

KEYS   session waiting flags readiness
ARGV   base sid
REPLY  RESUMED turn | ALREADY
]]
-- @include lib/activate
local s = read(session, {'paused', 'live'})
if s.paused ~= '1' then return {'ALREADY'} end
redis.call('HDEL', session, 'paused')
if s.live and s.live ~= '' then return {'RESUMED', ''} end
local next_turn = redis.call('LPOP', waiting)
if not next_turn then return {'RESUMED', ''} end
local key = base .. next_turn
activate(session, key, key .. ':budget', key .. ':events', flags, readiness, sid, next_turn)
return {'RESUMED', next_turn}
