--[[
Add a readiness flag to a session's queue. The session's next turn without a flag takes the oldest one.

KEYS   session flags readiness
ARGV   flag timeout_ms:n policy:HoldPolicy reason most:n keep_ms:n
REPLY  ADDED | ALREADY | FULL
]]
if redis.call('HEXISTS', flags, flag) == 1 then return {'ALREADY'} end
if redis.call('LLEN', readiness) >= most then return {'FULL'} end
redis.call('HSET', flags, flag, cjson.encode({timeout_ms = timeout_ms, policy = policy, reason = reason}))
redis.call('RPUSH', readiness, flag)
local live = redis.call('HGET', session, 'live')
if not live or live == '' then
  redis.call('PEXPIRE', flags, keep_ms)
  redis.call('PEXPIRE', readiness, keep_ms)
end
return {'ADDED'}
