-- Turns that wait for room begin while there is some: one of each tenant in turn, and of a tenant those of the highest priority,
-- first come, first served. Those whose brain is full stand aside.
-- @include lib/activate
-- @include lib/aside

-- The session's next turn begins. One that was paused, or whose turns were cancelled, has only lost its place.
local function begin_next(its_sid)
  local key = OUTBOX_PREFIX .. '{' .. its_sid .. '}:'
  local s = read(key .. 'session', {'live', 'paused'})
  if s.paused == '1' or (s.live and s.live ~= '') then return end
  local its_tid = redis.call('LPOP', key .. 'waiting')
  if not its_tid then return end
  local turn_key = key .. 't:' .. its_tid
  activate(key .. 'session', turn_key, turn_key .. ':budget', turn_key .. ':events', key .. 'flags', key .. 'readiness',
    its_sid, its_tid)
end

-- Who is next in a tenant's line. So that a lower priority is slow, and never starves, each eighth that would pass others is the
-- first of those instead: of the lowest and of the next lower class by turns. Returns whether others stand there still, too.
local EACH = 8
local function take_first(tenant, line, caps)
  local passed
  while true do
    local first = redis.call('ZRANGE', line, 0, 1, 'WITHSCORES')
    if not first[1] then return nil, false end
    local is_alone = not first[3]
    local class, chosen = math.floor(first[2] / A_CLASS), first[1]
    local lower = not is_alone and redis.call('ZRANGEBYSCORE', line, (class + 1) * A_CLASS, '+inf', 'LIMIT', 0, 1)[1]
    if lower then
      passed = passed or redis.call('HINCRBY', ROOM_PASSED, tenant, 1)
      if passed % EACH == 0 then
        local lowest = passed % (2 * EACH) == 0 and redis.call('ZRANGEBYSCORE', line, CLASSES.low * A_CLASS, '+inf', 'LIMIT', 0, 1)[1]
        chosen = lowest or lower
      end
    end
    local brain = caps and capped_brain_of(chosen, caps)
    if not brain or room_of_brain(brain) > 0 then
      if caps then forget_brain(chosen) end
      redis.call('ZREM', line, chosen)
      return chosen, not is_alone
    end
    step_aside(chosen, brain)
  end
end

-- `at`: the session in whose outbox the bells lie, in outbox mode: it is published after the script. nil: each in its own.
-- Returns the sessions that were asked.
local function fill_room(at)
  local before, asked = outbox_sid, {}
  outbox_sid = outbox_sid or at
  local share_full, n_full, caps, have_come = {}, 0, nil, false
  while not is_known_full() do
    local tenant, why = redis.call('ZRANGE', ROOM_TENANTS, 0, 0)[1], nil
    if tenant or caps == nil then
      why, caps = no_room(tenant or ':')
    end
    if why == 'full' then break end
    -- Those who stood aside: first of all, and when nobody else waits any more.
    local is_time = caps and not (tenant and have_come)
    have_come = true
    if is_time and call_back(caps, share_full, n_full) then
      -- Whose turn it is now is another question.
    elseif not tenant then
      break
    elseif why == 'tenant' then -- it comes back when one of its turns leaves
      share_full[tenant], n_full = true, n_full + 1
      redis.call('ZREM', ROOM_TENANTS, tenant)
      redis.call('ZADD', ROOM_CAPPED, 0, tenant)
    else
      local first, others_stand = take_first(tenant, line_of(tenant), caps)
      if others_stand then
        redis.call('ZADD', ROOM_TENANTS, behind(ROOM_TENANTS), tenant)
      else
        redis.call('ZREM', ROOM_TENANTS, tenant)
        redis.call('HDEL', ROOM_PASSED, tenant)
      end
      if first then
        begin_next(first)
        asked[#asked + 1] = first
      end
    end
  end
  outbox_sid = before
  return asked
end
