-- The format of the state of turns that these scripts write, and the oldest that they read. A turn of format 1 does not say so.
-- A newer one is given only to where what an older build would read wrong changes (docs/operate/builds.md).
local STATE_FORMAT, OLDEST_FORMAT = 1, 1

local function reads_format(format)
  if not format then return OLDEST_FORMAT == 1 end
  return tonumber(format) <= STATE_FORMAT and tonumber(format) >= OLDEST_FORMAT
end

-- What these scripts write is of their format, and so is what follows in the session: its history, and the turns that wait.
-- @lazy
local function raise_format(sid, tid)
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  redis.call('HSET', key .. 'session', 'format', STATE_FORMAT)
  redis.call('HSET', key .. 't:' .. tid, 'format', STATE_FORMAT)
  for _, its_tid in ipairs(redis.call('LRANGE', key .. 'waiting', 0, -1)) do
    redis.call('HSET', key .. 't:' .. its_tid, 'format', STATE_FORMAT)
  end
end
