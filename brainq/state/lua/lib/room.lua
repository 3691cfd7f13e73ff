-- The fleet's room: how many turns may be live at once, all together and of one tenant. `live` has those that are, but for
-- parked ones; membership in it is all that is counted, so nothing leaks. A session whose next turn finds no room waits in its
-- tenant's line; tenants that have a line, and may begin a turn, stand in `tenants`, the one that began one longest ago first.
-- Tenants that have a line, and no share left, are in `capped` meanwhile.
-- A turn of a brain that has a cap is in `live` once more, as ` BRAIN PLACE`: a brain's are counted by these.
-- @include lib/now
-- @include lib/tenant
-- @include lib/ring
local ROOM = OUTBOX_PREFIX .. '{room}:'
local ROOM_SIZE = ROOM .. 'size'
local ROOM_LIVE = ROOM .. 'live'
local ROOM_TENANTS = ROOM .. 'tenants'
local ROOM_CAPPED = ROOM .. 'capped'
local ROOM_PASSED = ROOM .. 'passed'
local ROOM_FOR = ROOM .. 'for'
local ALL, OF_TENANT = 125, 88 -- before a sweeper has set its size: room for one coordinator

local function line_of(tenant) return ROOM .. 'line:' .. tenant end
local function place_of(sid, tid) return (sid:find(':', 1, true) and '' or ':') .. sid .. ' ' .. tid end

-- One place, or two. A turn's brain is nil or empty where it names none.
local function members_of(sid, tid, brain)
  local place = place_of(sid, tid)
  if not brain or brain == '' then return place end
  return place, ' ' .. brain .. ' ' .. place
end

-- The names of the brains that have a cap, with a blank around each; false where none has, nothing is counted by one, and nobody is
-- in `for`. So whoever sees false need not look at any of that. Where nobody has set the room's size, or nobody any more, it is
-- not known: none is named. Asked for once a script.
local its_caps
local NONE_NAMED = '  '
local function caps_of_size(all, caps) return caps or not all and NONE_NAMED end
local function caps_now()
  if its_caps == nil then its_caps = caps_of_size(unpack(redis.call('HMGET', ROOM_SIZE, 'all', 'caps'))) end
  return its_caps
end

local function has_cap(caps, brain) return caps and brain and brain ~= '' and caps:find(' ' .. brain .. ' ', 1, true) end

-- The room as this script found it, and counted on since: nobody else changes it meanwhile. nil: nobody has looked yet, or must
-- look again.
local room_now

-- Also for a turn that goes on after it was parked, which no room is asked for.
local function join_room(sid, tid, brain)
  local place, of_brain = members_of(sid, tid, brain)
  local is_new
  if of_brain and has_cap(caps_now(), brain) then
    is_new = redis.call('ZADD', ROOM_LIVE, 0, place, 0, of_brain) == 2
  else
    is_new = redis.call('ZADD', ROOM_LIVE, 0, place) == 1
  end
  if room_now and is_new then room_now.live = room_now.live + 1 else room_now = nil end
end

local function count_live(caps)
  local places = redis.call('ZCARD', ROOM_LIVE)
  return caps and places - redis.call('ZLEXCOUNT', ROOM_LIVE, '-', '(!') or places
end

local function look_at_room(tenant)
  local size = redis.call('HMGET', ROOM_SIZE, 'all', 'tenant', tenant, 'caps')
  its_caps = caps_of_size(size[1], size[4])
  room_now = {all = tonumber(size[1] or ALL), share = size[2] or OF_TENANT, own = {[tenant] = size[3]}, live = count_live(its_caps)}
end

local function share_of(tenant)
  local own = room_now.own
  if own[tenant] == nil then own[tenant] = redis.call('HGET', ROOM_SIZE, tenant) end
  return tonumber(own[tenant] or room_now.share)
end

local function is_known_full() return room_now and room_now.live >= room_now.all end

-- Whether fewer turns of the tenant are live than its share is, whatever the room of all.
local function has_share_left(tenant)
  if not room_now then look_at_room(tenant) end
  local share = share_of(tenant)
  if room_now.live < share then return true end -- no tenant has more of them than there are
  return redis.call('ZLEXCOUNT', ROOM_LIVE, '[' .. tenant, '(' .. tenant:sub(1, -2) .. ';') < share
end

-- nil: a turn of the tenant may begin; else `full`, or `tenant`: only its own share is. And `caps_now`: whether there is room
-- for the turn's brain is another question.
local function no_room(tenant)
  if not room_now then look_at_room(tenant) end
  local caps = its_caps
  if is_known_full() then return 'full', caps end
  return not has_share_left(tenant) and 'tenant' or nil, caps
end

-- How many more turns of a brain may begin. Fewer than none where a cap was lowered, or turns went on that were parked.
local function room_of_brain(brain)
  local cap = redis.call('HGET', ROOM_SIZE, 'brain ' .. brain)
  if not cap then return math.huge end
  return tonumber(cap) - redis.call('ZLEXCOUNT', ROOM_LIVE, '[ ' .. brain .. ' ', '( ' .. brain .. '!')
end

local function brain_is_full(brain) return has_cap(caps_now(), brain) and room_of_brain(brain) <= 0 end

-- One more than the last one's score, or than that of the last one of this class; the time in us at least, so that whoever comes
-- into a line that was empty for a while is behind those who stand aside from it.
local CLASSES, A_CLASS = {high = 0, normal = 1, low = 2}, 3e15
local function behind(key, class)
  class = class or 0
  local last = redis.call('ZREVRANGEBYSCORE', key, '(' .. (class + 1) * A_CLASS, class * A_CLASS, 'WITHSCORES', 'LIMIT', 0, 1)
  return math.max((tonumber(last[2]) or 0) + 1, class * A_CLASS + clock[1] * 1000000 + clock[2])
end

-- Who is in `tenants` is not in `capped`.
-- @lazy
local function rotate_in(tenant)
  if redis.call('ZSCORE', ROOM_TENANTS, tenant) then return end
  redis.call('ZREM', ROOM_CAPPED, tenant)
  redis.call('ZADD', ROOM_TENANTS, behind(ROOM_TENANTS), tenant)
end

local function next_priority(sid)
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  local next_turn = redis.call('LINDEX', key .. 'waiting', 0)
  return next_turn and redis.call('HGET', key .. 't:' .. next_turn, 'priority')
end

-- The session waits for room, by the priority of its next turn, which is asked for where the script does not know it, at its place
-- if it has one there or before. Returns how many of its tenant are ahead of it.
-- @lazy
local function stand_in_line(sid, priority)
  local tenant = tenant_of(sid)
  local line, class = line_of(tenant), CLASSES[priority or next_priority(sid)] or CLASSES.normal
  local at = tonumber(redis.call('ZSCORE', line, sid) or '')
  if not at or at > (class + 1) * A_CLASS then redis.call('ZADD', line, behind(line, class), sid) end
  rotate_in(tenant)
  return redis.call('ZRANK', line, sid)
end

-- Returns whether somebody may wait for what is free now.
local function leave_room(sid, tid, brain)
  room_now = nil
  redis.call('ZREM', ROOM_LIVE, members_of(sid, tid, brain))
  local tenant = tenant_of(sid)
  local line = line_of(tenant)
  if redis.call('EXISTS', ROOM_TENANTS, line, ROOM_FOR) == 0 then return false end
  if redis.call('EXISTS', line) == 1 then rotate_in(tenant) end
  return true
end
