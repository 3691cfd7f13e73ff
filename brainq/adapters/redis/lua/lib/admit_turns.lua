-- Turns that wait for capacity begin while there is some: one of each tenant in turn, and of a tenant those of the highest
-- priority, first come, first served. Sessions whose brain is full are deferred.
-- @include lib/activate
-- @include lib/recall
-- @include lib/take_next

-- The session's next turn begins. One that was paused, or whose turns were cancelled, has only lost its position. Returns
-- whether one began.
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

-- The tenant whose turn it is, and why none of its turns may begin; nil where none waits, or the fleet is full. Deferred sessions
-- are recalled first of all, and when no tenant waits any more: whose turn it is then is another question.
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

-- The tenant's next turn begins, and those of others are before its next but one. Returns the session that was taken.
local function admit_of(tenant)
  local chosen, others_wait = take_next(tenant, sessions_of(tenant), caps_now())
  local began = chosen and begin_next(chosen)
  if not others_wait then
    redis.call('ZREM', QUEUED_TENANTS, tenant)
    redis.call('HDEL', PASSED_OVER, tenant)
  elseif began or not chosen then -- a session that was paused meanwhile has not used up its tenant's turn
    redis.call('ZADD', QUEUED_TENANTS, behind(QUEUED_TENANTS), tenant)
  end
  return chosen
end

-- `at`: the session in whose outbox the bells lie, in outbox mode: it is published after the script. nil: each in its own.
-- Returns the sessions whose turn it was.
-- It comes to its end, whatever the keys hold: each round takes a session out of a queue, or a tenant out of QUEUED_TENANTS. Only
-- `recall_deferred` puts any there, and none is deferred again while its brain has capacity, for no turn ends meanwhile. It ends
-- soon, too: what is left is for the next script, or the sweeper.
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
