-- The listeners of channels. Redis closes the sockets of a killed process within milliseconds.
-- @include lib/run
local function redis_run_id() return redis_run():match('^%x+') or '' end

-- Return 0 if this Redis does not report it, or if this user may not ask for it.
local function listeners(channel)
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return type(reply) == 'table' and not reply.err and tonumber(reply[2]) or 0
end
