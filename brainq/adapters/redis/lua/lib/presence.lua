-- Who listens to what: Redis closes the sockets of a process that was killed within milliseconds.
-- @include lib/run
local function redis_run_id() return redis_run():match('^%x+') or '' end

-- 0 where this Redis, or what this user may do, does not say.
local function listeners(channel)
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return type(reply) == 'table' and not reply.err and tonumber(reply[2]) or 0
end
