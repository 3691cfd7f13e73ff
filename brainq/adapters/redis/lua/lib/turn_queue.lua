-- Sessions whose next turn waits for capacity. Each tenant has a queue of them. Tenants with a queue that may begin a
-- turn are in QUEUED_TENANTS, beginning with the one that began a turn longest ago. Tenants with a queue but without a
-- share left are in CAPPED_TENANTS.
-- @include lib/capacity
local QUEUED_TENANTS = CAPACITY .. 'tenants'
local CAPPED_TENANTS = CAPACITY .. 'capped'
local PASSED_OVER = CAPACITY .. 'passed'
local WAITED_BRAINS = CAPACITY .. 'for'

local function sessions_of(tenant) return CAPACITY .. 'line:' .. tenant end

-- Return one more than the score of the last member, or of the last member of this class; but at least the time in us,
-- so that a session that joins a queue that was empty for a while is behind the sessions deferred from it.
local CLASSES, A_CLASS = {high = 0, normal = 1, low = 2}, 3e15
local function behind(key, class)
  class = class or 0
  local last = redis.call('ZREVRANGEBYSCORE', key, '(' .. (class + 1) * A_CLASS, class * A_CLASS, 'WITHSCORES', 'LIMIT', 0, 1)
  return math.max((tonumber(last[2]) or 0) + 1, class * A_CLASS + clock[1] * 1000000 + clock[2])
end

-- A tenant in QUEUED_TENANTS is not in CAPPED_TENANTS.
-- @lazy
local function rotate_in(tenant)
  if redis.call('ZSCORE', QUEUED_TENANTS, tenant) then return end
  redis.call('ZREM', CAPPED_TENANTS, tenant)
  redis.call('ZADD', QUEUED_TENANTS, behind(QUEUED_TENANTS), tenant)
end

local function next_priority(sid)
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  local next_turn = redis.call('LINDEX', key .. 'waiting', 0)
  return next_turn and redis.call('HGET', key .. 't:' .. next_turn, 'priority')
end

-- Queue the session by the priority of its next turn, which is read if the script does not know it. A session that is
-- queued already keeps its position, or moves forward. Returns how many sessions of its tenant are ahead of it.
-- @lazy
local function enqueue(sid, priority)
  local tenant = tenant_of(sid)
  local queue, class = sessions_of(tenant), CLASSES[priority or next_priority(sid)] or CLASSES.normal
  local at = tonumber(redis.call('ZSCORE', queue, sid) or '')
  if not at or at > (class + 1) * A_CLASS then redis.call('ZADD', queue, behind(queue, class), sid) end
  rotate_in(tenant)
  return redis.call('ZRANK', queue, sid)
end

-- Remove a turn from the live turns. Returns whether a session may be waiting for the capacity.
local function remove_live(sid, tid, brain)
  capacity_now = nil
  redis.call('ZREM', LIVE_TURNS, live_members(sid, tid, brain))
  local tenant = tenant_of(sid)
  local queue = sessions_of(tenant)
  if redis.call('EXISTS', QUEUED_TENANTS, queue, WAITED_BRAINS) == 0 then return false end
  if redis.call('EXISTS', queue) == 1 then rotate_in(tenant) end
  return true
end
