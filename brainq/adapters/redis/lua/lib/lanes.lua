-- Lanes. Each lane is a queue of calls, and a call holds its lanes when it is first in all of them. It joins all its
-- queues in one script, so no two calls wait for each other. A lane that no call wants has no key. LANES (the prefix of
-- their keys) and LANE_LEASE_MS are inserted by the loader, together with the doorbells.
-- @include lib/ring
local HOLDERS = LANES .. 'holders'
local LEASES = LANES .. 'leases'
local LANE_QUEUE = LANES .. 'line:'

local function is_first(holder, lanes)
  for _, lane in ipairs(cjson.decode(lanes)) do
    if redis.call('LINDEX', LANE_QUEUE .. lane, 0) ~= holder then return false end
  end
  return true
end

-- Return whether the call now holds all its lanes (a JSON array of names). Otherwise it waits in the queues.
local function take_lanes(holder, lanes)
  if lanes == '[]' then return true end
  if redis.call('HSETNX', HOLDERS, holder, lanes) == 1 then
    for _, lane in ipairs(cjson.decode(lanes)) do redis.call('RPUSH', LANE_QUEUE .. lane, holder) end
  end
  if not is_first(holder, lanes) then return false end
  redis.call('ZADD', LEASES, 'GT', now + LANE_LEASE_MS, holder)
  return true
end

-- Return whether a process beats for these lanes. A sweeper's mark is not a whole number, so it is not taken for a
-- lease (lane_lapsed).
local function are_renewed(holder)
  local until_ms = tonumber(redis.call('ZSCORE', LEASES, holder) or 0)
  return until_ms > now and until_ms % 1 == 0
end

-- Leave all queues. Returns the calls that now hold their lanes.
local function leave_lane_queues(holder)
  local lanes, granted = redis.call('HGET', HOLDERS, holder), {}
  if not lanes then return granted end
  redis.call('HDEL', HOLDERS, holder)
  redis.call('ZREM', LEASES, holder)
  for _, lane in ipairs(cjson.decode(lanes)) do
    redis.call('LREM', LANE_QUEUE .. lane, 0, holder)
    local first = redis.call('LINDEX', LANE_QUEUE .. lane, 0)
    -- A call with a lease already held its lanes before.
    if first and not redis.call('ZSCORE', LEASES, first) and is_first(first, redis.call('HGET', HOLDERS, first)) then
      redis.call('ZADD', LEASES, now + LANE_LEASE_MS, first)
      granted[#granted + 1] = first
    end
  end
  return granted
end
