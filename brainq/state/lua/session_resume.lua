--[[
Let the session's turns begin again: the first that waits does, when none is live and there is room, which it queues
for else.

KEYS   session waiting
ARGV   sid
REPLY  RESUMED turn | ALREADY
]]
-- @include lib/fill
local s = read(session, {'paused', 'live'})
if s.paused ~= '1' then return {'ALREADY'} end
redis.call('HDEL', session, 'paused', 'paused_at', 'paused_why')
if s.live and s.live ~= '' then return {'RESUMED', ''} end
if redis.call('EXISTS', waiting) == 0 then return {'RESUMED', ''} end
line_up(sid, caps_now())
fill_room(sid)
return {'RESUMED', redis.call('HGET', session, 'live') or ''}
