-- The fleet's room: how many turns may be live at once, all together and of one tenant. `live` has those that are, but for
-- parked ones; membership in it is all that is counted, so nothing leaks. A session whose next turn finds no room stands in its
-- tenant's line; tenants that have a line, and may begin a turn, stand in `tenants`, the one that began one longest ago first.
-- Tenants that have a line, and no share left, are in `capped` meanwhile.
-- A tenant is what its sessions' ids begin with, up to the first colon; ids without one are one tenant.
-- @include lib/ring
local ROOM = OUTBOX_PREFIX .. '{room}:'
local ROOM_SIZE, ROOM_LIVE, ROOM_TENANTS, ROOM_CAPPED = ROOM .. 'size', ROOM .. 'live', ROOM .. 'tenants', ROOM .. 'capped'
local ROOM_PASSED = ROOM .. 'passed'
local ALL, OF_TENANT = 125, 88 -- before a sweeper has said how large it is: room for one coordinator

local function tenant_of(sid) return sid:match('^[^:]+:') or ':' end
local function line_of(tenant) return ROOM .. 'line:' .. tenant end
local function place_of(sid, tid) return (sid:find(':', 1, true) and '' or ':') .. sid .. ' ' .. tid end

-- Also for a turn that goes on after it was parked, which no room is asked for.
local function join_room(sid, tid) redis.call('ZADD', ROOM_LIVE, 0, place_of(sid, tid)) end

-- nil: a turn of the tenant may begin; else `full`, or `tenant`: only its own share is.
local function no_room(tenant)
  local size = redis.call('HMGET', ROOM_SIZE, 'all', 'tenant', tenant)
  if redis.call('ZCARD', ROOM_LIVE) >= tonumber(size[1] or ALL) then return 'full' end
  local its = redis.call('ZLEXCOUNT', ROOM_LIVE, '[' .. tenant, '(' .. tenant:sub(1, -2) .. ';')
  if its >= tonumber(size[3] or size[2] or OF_TENANT) then return 'tenant' end
  return nil
end

-- One more than the last one's score, or than that of the last one of this class.
local CLASSES, A_CLASS = {high = 0, normal = 1, low = 2}, 1e12
local function behind(key, class)
  class = class or 0
  local last = redis.call('ZREVRANGEBYSCORE', key, '(' .. (class + 1) * A_CLASS, class * A_CLASS, 'WITHSCORES', 'LIMIT', 0, 1)
  return (tonumber(last[2]) or class * A_CLASS) + 1
end

local function rotate_in(tenant)
  redis.call('ZREM', ROOM_CAPPED, tenant)
  if not redis.call('ZSCORE', ROOM_TENANTS, tenant) then redis.call('ZADD', ROOM_TENANTS, behind(ROOM_TENANTS), tenant) end
end

-- The session waits for room, by the priority of its next turn, at its place if it has one there or before. Returns how many
-- of its tenant are ahead of it.
local function stand_in_line(sid)
  local tenant, key = tenant_of(sid), OUTBOX_PREFIX .. '{' .. sid .. '}:'
  local line, next_turn = line_of(tenant), redis.call('LINDEX', key .. 'waiting', 0)
  local class = CLASSES[next_turn and redis.call('HGET', key .. 't:' .. next_turn, 'priority')] or CLASSES.normal
  local at = tonumber(redis.call('ZSCORE', line, sid) or '')
  if not at or at > (class + 1) * A_CLASS then redis.call('ZADD', line, behind(line, class), sid) end
  rotate_in(tenant)
  return redis.call('ZRANK', line, sid)
end

-- Returns whether somebody may wait for what is free now.
local function leave_room(sid, tid)
  redis.call('ZREM', ROOM_LIVE, place_of(sid, tid))
  local tenant = tenant_of(sid)
  local line = line_of(tenant)
  if redis.call('EXISTS', ROOM_TENANTS, line) == 0 then return false end
  if redis.call('EXISTS', line) == 1 then rotate_in(tenant) end
  return true
end
