-- The server keeps a small hash as a list, which takes less memory but is searched from its first field at each access.
-- A hash that a turn reads and writes all the time is made a table, by a value that is too long for lists.
-- lib/shrink_parked makes it a list again.
local TOO_LONG = 1025 -- hash-max-listpack-value is 1024 at most: ops/redis/redis.conf

local function set_as_table(key, ...)
  redis.call('HSET', key, 'long', (' '):rep(TOO_LONG), ...)
  redis.call('HDEL', key, 'long')
end
