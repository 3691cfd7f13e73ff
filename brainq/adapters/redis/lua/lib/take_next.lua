-- Which session of a tenant's queue is next.
-- @include lib/deferred
-- The session of a queue that is next. So that a lower priority is slow, and never starves, each eighth that would pass others is
-- the first of those instead: of the lowest and of the next lower class by turns. `passed` is how many did, where it is known.
local EACH = 8
local function next_session(tenant, queue, first, class, passed)
  local lower = redis.call('ZRANGEBYSCORE', queue, (class + 1) * A_CLASS, '+inf', 'LIMIT', 0, 1)[1]
  if not lower then return first, passed end
  passed = passed or redis.call('HINCRBY', PASSED_OVER, tenant, 1)
  if passed % EACH ~= 0 then return first, passed end
  local lowest = passed % (2 * EACH) == 0
    and redis.call('ZRANGEBYSCORE', queue, CLASSES.low * A_CLASS, '+inf', 'LIMIT', 0, 1)[1]
  return lowest or lower, passed
end

-- Takes the next session out of a tenant's queue whose brain is not full; those before it are deferred. Returns whether others
-- are queued still, too.
local function take_next(tenant, queue, caps)
  local passed, chosen
  for _ = 1, MAX_RECALLED do
    local first = redis.call('ZRANGE', queue, 0, 1, 'WITHSCORES')
    if not first[1] then return nil, false end
    local others_wait = first[3] ~= nil
    chosen = first[1]
    if others_wait then chosen, passed = next_session(tenant, queue, chosen, math.floor(first[2] / A_CLASS), passed) end
    local brain = caps and capped_brain_of(chosen, caps)
    if not brain or capacity_of_brain(brain) > 0 then
      if caps then stop_waiting(chosen) end
      redis.call('ZREM', queue, chosen)
      return chosen, others_wait
    end
    defer(chosen, brain)
  end
  return nil, true
end
