-- The format of the turns' state that these scripts write, and the oldest that they read. A turn of format 1 has no
-- field for it. A newer format is only written if a change would make an older build read the state wrongly
-- (docs/operate/builds.md).
local STATE_FORMAT, OLDEST_FORMAT = 1, 1

local function reads_format(format)
  if not format then return OLDEST_FORMAT == 1 end
  return tonumber(format) <= STATE_FORMAT and tonumber(format) >= OLDEST_FORMAT
end

-- Raise the format of a turn to that of these scripts, and with it the session's history and the turns that wait.
-- @lazy
local function raise_format(sid, tid)
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  redis.call('HSET', key .. 'session', 'format', STATE_FORMAT)
  redis.call('HSET', key .. 't:' .. tid, 'format', STATE_FORMAT)
  for _, its_tid in ipairs(redis.call('LRANGE', key .. 'waiting', 0, -1)) do
    redis.call('HSET', key .. 't:' .. its_tid, 'format', STATE_FORMAT)
  end
end
