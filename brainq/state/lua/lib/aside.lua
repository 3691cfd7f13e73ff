-- A session whose next turn is of a brain with a cap has its place in its tenant's line while there may be room for that brain, and
-- is deferred else, so that it keeps nobody waiting behind it: a line has no more of them than may begin. `for` says for which brain a
-- session waits, queued or deferred. A deferred one is called back to that place in line when there is room: tenants take turns.
-- @include lib/room
local function tenants_for(brain) return ROOM_FOR .. ':' .. brain end
local function aside_of(brain, tenant) return ROOM_FOR .. ':' .. brain .. ' ' .. tenant end
local function next_of(brain, tenant) return ROOM .. 'next:' .. brain .. ' ' .. tenant end
local MOST_NEXT = 100 -- so that no script moves thousands, when a cap is lifted

-- The brain of the session's next turn, where it has a cap.
local function capped_brain_of(sid, caps)
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  local next_turn = redis.call('LINDEX', key .. 'waiting', 0)
  local brain = next_turn and redis.call('HGET', key .. 't:' .. next_turn, 'brain')
  return has_cap(caps, brain) and brain or nil
end

-- Returns its place in line, if it stood aside.
local function forget_brain(sid)
  local brain = redis.call('HGET', ROOM_FOR, sid)
  if not brain then return nil end
  local tenant = tenant_of(sid)
  local aside = aside_of(brain, tenant)
  local place = redis.call('ZSCORE', aside, sid)
  redis.call('HDEL', ROOM_FOR, sid)
  if not place then
    redis.call('SREM', next_of(brain, tenant), sid)
    return nil
  end
  redis.call('ZREM', aside, sid)
  if redis.call('EXISTS', aside) == 0 then redis.call('ZREM', tenants_for(brain), tenant) end
  return place
end

-- Out of its tenant's line. Returns how many of the tenant are ahead of it there.
local function step_aside(sid, brain)
  forget_brain(sid)
  local tenant, tenants = tenant_of(sid), tenants_for(brain)
  local line, aside = line_of(tenant), aside_of(brain, tenant)
  redis.call('HSET', ROOM_FOR, sid, brain)
  redis.call('ZADD', aside, redis.call('ZSCORE', line, sid), sid)
  redis.call('ZREM', line, sid)
  if not redis.call('ZSCORE', tenants, tenant) then redis.call('ZADD', tenants, behind(tenants), tenant) end
  return redis.call('ZRANK', aside, sid)
end

local function may_be_next(brain, tenant)
  return redis.call('SCARD', next_of(brain, tenant)) < math.min(room_of_brain(brain), MOST_NEXT)
end

local function is_next(sid, brain)
  redis.call('HSET', ROOM_FOR, sid, brain)
  redis.call('SADD', next_of(brain, tenant_of(sid)), sid)
end

local function call_first(brain, tenant)
  local aside = aside_of(brain, tenant)
  local first = redis.call('ZPOPMIN', aside)
  if redis.call('EXISTS', aside) == 0 then redis.call('ZREM', tenants_for(brain), tenant) end
  if not first[1] then return end
  redis.call('ZADD', line_of(tenant), first[2], first[1])
  is_next(first[1], brain)
end

-- For as many turns as there is room for in each brain: one of each tenant in turn, not of those that are known to have no share
-- left, `n_full` names in `share_full`. One that has somebody in line has its turn too. Where the line is empty nobody is next,
-- whatever is counted: so somebody is called, or nobody is deferred any more.
local function call_back(caps, share_full, n_full)
  for brain in caps:gmatch('%S+') do
    local tenants = tenants_for(brain)
    local left = redis.call('EXISTS', tenants) == 1 and math.min(room_of_brain(brain), MOST_NEXT) or 0
    local names = left > 0 and redis.call('ZRANGE', tenants, 0, n_full + left - 1) or {}
    for _, tenant in ipairs(names) do
      if left > 0 and not share_full[tenant] then
        left = left - 1
        redis.call('ZADD', tenants, behind(tenants), tenant)
        if redis.call('EXISTS', line_of(tenant)) == 0 then redis.call('DEL', next_of(brain, tenant)) end
        if may_be_next(brain, tenant) then call_first(brain, tenant) end
        rotate_in(tenant)
      end
    end
  end
end

-- A session that waits waits for what its next turn needs, whatever it has waited for. Returns how many are ahead of it.
-- @lazy
local function line_up(sid, caps)
  local place = forget_brain(sid)
  if place then redis.call('ZADD', line_of(tenant_of(sid)), place, sid) end
  local ahead, brain = stand_in_line(sid), capped_brain_of(sid, caps)
  if not brain then return ahead end
  if not may_be_next(brain, tenant_of(sid)) then return step_aside(sid, brain) end
  is_next(sid, brain)
  return ahead
end
