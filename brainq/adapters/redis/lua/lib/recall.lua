-- Recall deferred sessions to their tenants' queues.
-- @include lib/deferred
local function recall_first(brain, tenant)
  local first = redis.call('ZPOPMIN', deferred_sessions_of(brain, tenant))
  forget_tenant_without_deferred(brain, tenant)
  if not first[1] then return end
  redis.call('ZADD', sessions_of(tenant), first[2], first[1])
  note_recalled(first[1], brain)
end

-- Recall one session of a tenant if its brain may have capacity for it. In an empty queue no session can be recalled,
-- whatever the count says. So a session is recalled, or none is deferred any more.
local function recall_of(brain, tenant)
  if redis.call('EXISTS', sessions_of(tenant)) == 0 then redis.call('DEL', recalled_sessions_of(brain, tenant)) end
  if may_be_recalled(brain, tenant) then recall_first(brain, tenant) end
  rotate_in(tenant)
end

-- Recall as many sessions as each brain has capacity for: one of each tenant in turn, except `full_tenants`, the
-- `n_full` names that are known to have no share left. A tenant with a queued session also gets its turn.
-- @lazy
local function recall_deferred(caps, full_tenants, n_full)
  for brain in caps:gmatch('%S+') do
    local tenants = tenants_deferred_for(brain)
    local left = redis.call('EXISTS', tenants) == 1 and math.min(capacity_of_brain(brain), MAX_RECALLED) or 0
    local names = left > 0 and redis.call('ZRANGE', tenants, 0, n_full + left - 1) or {}
    for _, tenant in ipairs(names) do
      if left > 0 and not full_tenants[tenant] then
        left = left - 1
        redis.call('ZADD', tenants, behind(tenants), tenant)
        recall_of(brain, tenant)
      end
    end
  end
end
