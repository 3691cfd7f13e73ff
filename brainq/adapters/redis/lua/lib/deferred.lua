-- Sessions whose next turn belongs to a brain with a cap. Such a session is queued while its brain may have capacity
-- for it, and deferred otherwise, so that the sessions behind it need not wait for that brain. A queue has no more of
-- them than may begin. When there is capacity, deferred sessions are recalled to their positions in the queue; tenants
-- take turns. WAITED_BRAINS has the brain that a queued or deferred session waits for.
-- @include lib/turn_queue
local function tenants_deferred_for(brain) return WAITED_BRAINS .. ':' .. brain end
local function deferred_sessions_of(brain, tenant) return WAITED_BRAINS .. ':' .. brain .. ' ' .. tenant end
local function recalled_sessions_of(brain, tenant) return CAPACITY .. 'next:' .. brain .. ' ' .. tenant end
local MAX_RECALLED = 100 -- a bound, so that no script moves thousands of sessions when a cap is lifted

-- Return the brain of the session's next turn if it has a cap.
local function capped_brain_of(sid, caps)
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  local next_turn = redis.call('LINDEX', key .. 'waiting', 0)
  local brain = next_turn and redis.call('HGET', key .. 't:' .. next_turn, 'brain')
  return has_cap(caps, brain) and brain or nil
end

local function forget_tenant_without_deferred(brain, tenant)
  if redis.call('EXISTS', deferred_sessions_of(brain, tenant)) == 0 then
    redis.call('ZREM', tenants_deferred_for(brain), tenant)
  end
end

-- End the session's wait for a brain. Returns its position in the queue if it was deferred.
local function stop_waiting(sid)
  local brain = redis.call('HGET', WAITED_BRAINS, sid)
  if not brain then return nil end
  local tenant = tenant_of(sid)
  local deferred = deferred_sessions_of(brain, tenant)
  local position = redis.call('ZSCORE', deferred, sid)
  redis.call('HDEL', WAITED_BRAINS, sid)
  if not position then
    redis.call('SREM', recalled_sessions_of(brain, tenant), sid)
    return nil
  end
  redis.call('ZREM', deferred, sid)
  forget_tenant_without_deferred(brain, tenant)
  return position
end

-- Move a session out of its tenant's queue. Returns how many deferred sessions of the tenant are ahead of it.
local function defer(sid, brain)
  stop_waiting(sid)
  local tenant, tenants = tenant_of(sid), tenants_deferred_for(brain)
  local queue, deferred = sessions_of(tenant), deferred_sessions_of(brain, tenant)
  redis.call('HSET', WAITED_BRAINS, sid, brain)
  redis.call('ZADD', deferred, redis.call('ZSCORE', queue, sid), sid)
  redis.call('ZREM', queue, sid)
  if not redis.call('ZSCORE', tenants, tenant) then redis.call('ZADD', tenants, behind(tenants), tenant) end
  return redis.call('ZRANK', deferred, sid)
end

local function may_be_recalled(brain, tenant)
  return redis.call('SCARD', recalled_sessions_of(brain, tenant)) < math.min(capacity_of_brain(brain), MAX_RECALLED)
end

local function note_recalled(sid, brain)
  redis.call('HSET', WAITED_BRAINS, sid, brain)
  redis.call('SADD', recalled_sessions_of(brain, tenant_of(sid)), sid)
end

-- Queue a session for what its next turn needs, whatever it has waited for before. Returns how many are ahead of it.
-- @lazy
local function enqueue_session(sid, caps)
  local position = stop_waiting(sid)
  if position then redis.call('ZADD', sessions_of(tenant_of(sid)), position, sid) end
  local ahead, brain = enqueue(sid), capped_brain_of(sid, caps)
  if not brain then return ahead end
  if not may_be_recalled(brain, tenant_of(sid)) then return defer(sid, brain) end
  note_recalled(sid, brain)
  return ahead
end
