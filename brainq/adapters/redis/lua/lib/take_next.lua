-- The choice of the next session of a tenant's queue.
-- @include lib/deferred
-- Return the next session of a queue. Lower priorities are slow but never starve: each eighth time that others would be
-- passed over, the first of those goes instead, alternately of the lowest and of the next lower class. `passed` is how
-- many were passed over, if that is known.
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

-- Take the next session whose brain is not full out of a tenant's queue. Those before it are deferred. Returns the
-- session, and whether others are still queued.
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
