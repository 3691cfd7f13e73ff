-- Turns that wait for room begin while there is some: one of each tenant in turn, and of a tenant those of the highest priority,
-- first come, first served.
-- @include lib/activate
-- @include lib/room

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
-- first of those instead: of the lowest and of the next lower class by turns.
local EACH = 8
local function take_first(tenant, line)
  local first = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')
  if not first[1] then return nil end
  local class, chosen = math.floor(first[2] / A_CLASS), first[1]
  local lower = redis.call('ZRANGEBYSCORE', line, (class + 1) * A_CLASS, '+inf', 'LIMIT', 0, 1)[1]
  if lower then
    local passed = redis.call('HINCRBY', ROOM_PASSED, tenant, 1)
    if passed % EACH == 0 then
      local lowest = passed % (2 * EACH) == 0 and redis.call('ZRANGEBYSCORE', line, CLASSES.low * A_CLASS, '+inf', 'LIMIT', 0, 1)[1]
      chosen = lowest or lower
    end
  end
  redis.call('ZREM', line, chosen)
  return chosen
end

-- `at`: the session in whose outbox the bells lie, in outbox mode: it is published after the script. nil: each in its own.
-- Returns the sessions that were asked.
local function fill_room(at)
  local before, asked = outbox_sid, {}
  outbox_sid = outbox_sid or at
  while true do
    local tenant = redis.call('ZRANGE', ROOM_TENANTS, 0, 0)[1]
    local why = tenant and no_room(tenant)
    if not tenant or why == 'full' then break end
    local line = line_of(tenant)
    if why == 'tenant' then -- it comes back when one of its turns leaves
      redis.call('ZREM', ROOM_TENANTS, tenant)
      redis.call('ZADD', ROOM_CAPPED, 0, tenant)
    else
      local first = take_first(tenant, line)
      if redis.call('EXISTS', line) == 1 then
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
