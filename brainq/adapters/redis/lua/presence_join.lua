--[[
Note that a process listens on its channel, so that it is known to be gone when it no longer does. DEAF: nobody is heard to
listen there, as behind a proxy that keeps subscriptions to itself, or nothing says so; then it is not watched.

KEYS   presence
ARGV   channels process keep_ms:n
REPLY  WATCHED | DEAF
]]
-- @include lib/presence
local run = redis_run_id()
if run == '' or listeners(channels .. process) == 0 then
  redis.call('HDEL', presence, process)
  return {'DEAF'}
end
redis.call('HSET', presence, process, run .. ' 0')
redis.call('PEXPIRE', presence, keep_ms)
return {'WATCHED'}
