--[[
No further turn of the session begins, until it is resumed. A live one goes on.

KEYS   session waiting
ARGV   keep_session_ms:n
REPLY  PAUSED | ALREADY
]]
-- @include lib/fields
local s = read(session, {'paused', 'live'})
if s.paused == '1' then return {'ALREADY'} end
redis.call('HSET', session, 'paused', '1')
if (not s.live or s.live == '') and redis.call('EXISTS', waiting) == 0 then
  redis.call('PEXPIRE', session, keep_session_ms)
end
return {'PAUSED'}
