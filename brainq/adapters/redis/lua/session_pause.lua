--[[
Pause a session, so that none of its further turns begins until it is resumed. A live turn continues. `why` is shown to
people, or is empty. The first reason is kept.

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
