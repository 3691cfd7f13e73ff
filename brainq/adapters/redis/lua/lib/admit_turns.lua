-- Begin waiting turns while there is capacity: one of each tenant in turn, and of one tenant those with the highest
-- priority, first come, first served. Sessions whose brain is full are deferred.
-- @include lib/activate
-- @include lib/recall
-- @include lib/take_next

-- Begin the session's next turn, and return whether one began. A session that was paused, or whose turns were
-- cancelled, only loses its position.
local function begin_next(its_sid)
  local key = OUTBOX_PREFIX .. '{' .. its_sid .. '}:'
  local s = read(key .. 'session', {'live', 'paused'})
  if s.paused == '1' or (s.live and s.live ~= '') then return false end
  local its_tid = redis.call('LPOP', key .. 'waiting')
  if not its_tid then return false end
  local turn_key = key .. 't:' .. its_tid
  activate(key .. 'session', turn_key, turn_key .. ':budget', turn_key .. ':events', key .. 'flags', key .. 'readiness',
    its_sid, its_tid)
  return true
end

local function first_tenant() return redis.call('ZRANGE', QUEUED_TENANTS, 0, 0)[1] end

-- Return the tenant whose turn it is, and why none of its turns may begin. Returns nil if no tenant waits or the fleet
-- is full. Deferred sessions are recalled in the first round, and whenever no other tenant waits; that may change whose
-- turn it is.
local function next_tenant(is_first_round, full_tenants, n_full)
  if is_known_full() then return nil end
  local tenant, why = first_tenant(), nil
  if tenant or is_first_round then why = why_full(tenant or ':') end
  if why == 'full' then return nil end
  if caps_now() and (is_first_round or not tenant) then
    recall_deferred(caps_now(), full_tenants, n_full)
    tenant = first_tenant()
    if tenant then why = why_full(tenant) end
  end
  return tenant, why
end

-- Begin the tenant's next turn, and return the session that was taken. Other tenants come before the tenant's following
-- turn.
local function admit_of(tenant)
  local chosen, others_wait = take_next(tenant, sessions_of(tenant), caps_now())
  local began = chosen and begin_next(chosen)
  if not others_wait then
    redis.call('ZREM', QUEUED_TENANTS, tenant)
    redis.call('HDEL', PASSED_OVER, tenant)
  elseif began or not chosen then -- a session that was paused in the meantime does not use up its tenant's turn
    redis.call('ZADD', QUEUED_TENANTS, behind(QUEUED_TENANTS), tenant)
  end
  return chosen
end

-- Return the sessions whose turn it was. In outbox mode, `at` is the session whose outbox gets the bells; it is
-- published after the script. With nil, each bell goes to its own session. The loop always ends: each round takes a
-- session out of a queue, or a tenant out of QUEUED_TENANTS. Only `recall_deferred` adds any, and no session is
-- deferred again while its brain has capacity, because no turn ends in the meantime. The number of rounds is bounded as
-- well; the next script or the sweeper does the rest.
local MAX_ROUNDS = 1000
-- @lazy
local function admit_turns(at)
  local before, asked, full_tenants, n_full = outbox_sid, {}, {}, 0
  outbox_sid = outbox_sid or at
  for round = 1, MAX_ROUNDS do
    local tenant, why = next_tenant(round == 1, full_tenants, n_full)
    if not tenant then break end
    if why == 'tenant' then -- it comes back when one of its turns leaves
      full_tenants[tenant], n_full = true, n_full + 1
      redis.call('ZREM', QUEUED_TENANTS, tenant)
      redis.call('ZADD', CAPPED_TENANTS, 0, tenant)
    else
      asked[#asked + 1] = admit_of(tenant)
    end
  end
  outbox_sid = before
  return asked
end
