--[[
Resume a session. Its first waiting turn begins if no turn is live and there is capacity. Otherwise the session queues
for capacity.

KEYS   session waiting
ARGV   sid
REPLY  RESUMED turn | ALREADY
]]
-- @include lib/admit_turns
local s = read(session, {'paused', 'live'})
if s.paused ~= '1' then return {'ALREADY'} end
redis.call('HDEL', session, 'paused', 'paused_at', 'paused_why')
if s.live and s.live ~= '' then return {'RESUMED', ''} end
if redis.call('EXISTS', waiting) == 0 then return {'RESUMED', ''} end
enqueue_session(sid, caps_now())
admit_turns(sid)
return {'RESUMED', redis.call('HGET', session, 'live') or ''}
