-- Sessions whose next turn waits for capacity: each tenant has a queue of them. Tenants that have a queue, and may begin a turn,
-- are in QUEUED_TENANTS, the one that began one longest ago first; those that have a queue, and no share left, in CAPPED_TENANTS.
-- @include lib/capacity
local QUEUED_TENANTS = CAPACITY .. 'tenants'
local CAPPED_TENANTS = CAPACITY .. 'capped'
local PASSED_OVER = CAPACITY .. 'passed'
local WAITED_BRAINS = CAPACITY .. 'for'

local function sessions_of(tenant) return CAPACITY .. 'line:' .. tenant end

-- One more than the last one's score, or than that of the last one of this class; the time in us at least, so that a session
-- that comes into a queue that was empty for a while is behind those that are deferred from it.
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

-- The session waits, by the priority of its next turn, which is read where the script does not know it. One that is queued
-- already keeps its position, or comes nearer. Returns how many of its tenant are ahead of it.
-- @lazy
local function enqueue(sid, priority)
  local tenant = tenant_of(sid)
  local queue, class = sessions_of(tenant), CLASSES[priority or next_priority(sid)] or CLASSES.normal
  local at = tonumber(redis.call('ZSCORE', queue, sid) or '')
  if not at or at > (class + 1) * A_CLASS then redis.call('ZADD', queue, behind(queue, class), sid) end
  rotate_in(tenant)
  return redis.call('ZRANK', queue, sid)
end

-- The turn is live no more. Returns whether a session may wait for what is free now.
local function remove_live(sid, tid, brain)
  capacity_now = nil
  redis.call('ZREM', LIVE_TURNS, live_members(sid, tid, brain))
  local tenant = tenant_of(sid)
  local queue = sessions_of(tenant)
  if redis.call('EXISTS', QUEUED_TENANTS, queue, WAITED_BRAINS) == 0 then return false end
  if redis.call('EXISTS', queue) == 1 then rotate_in(tenant) end
  return true
end
