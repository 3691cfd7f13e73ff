-- Whether a call is first in all its lines. A lane nobody wants has no key.
local function is_first(holders_key, holder)
  local lines = redis.call('HGET', holders_key, holder)
  if not lines then return false end
  for _, line in ipairs(cjson.decode(lines)) do
    if redis.call('LINDEX', line, 0) ~= holder then return false end
  end
  return true
end

-- Leave all lines; appends to `reply` who holds its lanes because of that. Uses lib/now.
local function leave_lines(holders_key, leases_key, holder, lease_ms, reply)
  local lines, seen = redis.call('HGET', holders_key, holder), {}
  if not lines then return reply end
  redis.call('HDEL', holders_key, holder)
  redis.call('ZREM', leases_key, holder)
  for _, line in ipairs(cjson.decode(lines)) do
    redis.call('LREM', line, 0, holder)
    local first = redis.call('LINDEX', line, 0)
    if first and not seen[first] and is_first(holders_key, first) then
      seen[first] = true
      if not redis.call('ZSCORE', leases_key, first) then
        redis.call('ZADD', leases_key, now + lease_ms, first)
        reply[#reply + 1] = first
      end
    end
  end
  return reply
end
