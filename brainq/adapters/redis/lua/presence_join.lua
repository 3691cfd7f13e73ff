--[[
Record that a process listens on its channel, so that its absence can be noticed. DEAF means that no listener is visible
there, for example behind a proxy that keeps subscriptions to itself, or that Redis does not report it. The process is
then not watched.

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
