--[[
No further turn of the session begins, until it is resumed. A live one goes on.

KEYS   session waiting
ARGV   keep_session_ms:n
REPLY  PAUSED | ALREADY
]]
local held = redis.call('HMGET', session, 'paused', 'live')
if held[1] == '1' then return {'ALREADY'} end
redis.call('HSET', session, 'paused', '1')
if (not held[2] or held[2] == '') and redis.call('EXISTS', waiting) == 0 then
  redis.call('PEXPIRE', session, keep_session_ms)
end
return {'PAUSED'}
