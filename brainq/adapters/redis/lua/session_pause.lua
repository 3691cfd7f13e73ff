--[[
No further turn of the session begins, until it is resumed. A live one goes on. `why` is shown to people, or empty;
the first reason is kept.

KEYS   session waiting
ARGV   keep_session_ms:n why
REPLY  PAUSED | ALREADY
]]
-- @include lib/now
-- @include lib/fields
local s = read(session, {'paused', 'live'})
if s.paused == '1' then return {'ALREADY'} end
redis.call('HSET', session, 'paused', '1', 'paused_at', now, 'paused_why', why)
if (not s.live or s.live == '') and redis.call('EXISTS', waiting) == 0 then
  redis.call('PEXPIRE', session, keep_session_ms)
end
return {'PAUSED'}
