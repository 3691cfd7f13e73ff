-- Turns that wait for room begin while there is some: one of each tenant in turn, and of a tenant those of the highest priority,
-- first come, first served. Those whose brain is full stand aside.
-- @include lib/activate
-- @include lib/aside

-- The session's next turn begins. One that was paused, or whose turns were cancelled, has only lost its place. Returns whether
-- one began.
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

-- Who is next in a tenant's line. So that a lower priority is slow, and never starves, each eighth that would pass others is the
-- first of those instead: of the lowest and of the next lower class by turns. Returns whether others stand there still, too.
local EACH = 8
local function take_first(tenant, line, caps)
  local passed
  for _ = 1, MOST_NEXT do
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
  return nil, true
end

-- `at`: the session in whose outbox the bells lie, in outbox mode: it is published after the script. nil: each in its own.
-- Returns the sessions that were asked.
-- It comes to its end, whatever is in the room's keys: each round takes somebody out of a line, or a tenant out of `tenants`. Only
-- `call_back` puts any there, who stood aside, and none steps aside again while there is room for its brain, which nobody leaves
-- meanwhile. It ends soon, too: what is left is for the next script, or the sweeper.
local MOST_ROUNDS = 1000
-- @lazy
local function fill_room(at)
  local before, asked = outbox_sid, {}
  outbox_sid = outbox_sid or at
  local share_full, n_full, caps = {}, 0, nil
  for round = 1, MOST_ROUNDS do
    if is_known_full() then break end
    local tenant, why = redis.call('ZRANGE', ROOM_TENANTS, 0, 0)[1], nil
    if tenant or round == 1 then
      why, caps = no_room(tenant or ':')
    end
    if why == 'full' then break end
    -- Those who stood aside: first of all, and when nobody else waits any more. Whose turn it is then is another question.
    if caps and (round == 1 or not tenant) then
      call_back(caps, share_full, n_full)
      tenant = redis.call('ZRANGE', ROOM_TENANTS, 0, 0)[1]
      if tenant then why = no_room(tenant) end
    end
    if not tenant then break end
    if why == 'tenant' then -- it comes back when one of its turns leaves
      share_full[tenant], n_full = true, n_full + 1
      redis.call('ZREM', ROOM_TENANTS, tenant)
      redis.call('ZADD', ROOM_CAPPED, 0, tenant)
    else
      local first, others_stand = take_first(tenant, line_of(tenant), caps)
      local began = first and begin_next(first)
      if first then asked[#asked + 1] = first end
      if not others_stand then
        redis.call('ZREM', ROOM_TENANTS, tenant)
        redis.call('HDEL', ROOM_PASSED, tenant)
      elseif began or not first then -- a session that was paused meanwhile has not used up its tenant's turn
        redis.call('ZADD', ROOM_TENANTS, behind(ROOM_TENANTS), tenant)
      end
    end
  end
  outbox_sid = before
  return asked
end
