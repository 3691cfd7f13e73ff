-- How many turns may be live at once: of the fleet, of one tenant, of one brain. LIVE_TURNS has those that are, but for parked
-- ones; membership in it is all that is counted, so nothing leaks. A turn of a brain that has a cap is in it once more, as
-- ` BRAIN MEMBER`: a brain's are counted by these. Sessions that wait for capacity: lib/turn_queue.
-- @include lib/now
-- @include lib/tenant
-- @include lib/ring
local CAPACITY = OUTBOX_PREFIX .. '{room}:'
local CAPACITY_SIZE = CAPACITY .. 'size'
local LIVE_TURNS = CAPACITY .. 'live'
local FLEET_DEFAULT, TENANT_DEFAULT = 125, 88 -- before a sweeper has set the size: capacity for one coordinator

local function live_member(sid, tid) return (sid:find(':', 1, true) and '' or ':') .. sid .. ' ' .. tid end

-- One member, or two. A turn's brain is nil or empty where it names none.
local function live_members(sid, tid, brain)
  local member = live_member(sid, tid)
  if not brain or brain == '' then return member end
  return member, ' ' .. brain .. ' ' .. member
end

-- The names of the brains that have a cap, with a blank around each; false where none has: nothing is counted by brain then, and
-- no session waits for one. Where the size is not set, or has expired, it is not known: none is named. Asked for once a script.
local its_caps
local NONE_NAMED = '  '
local function caps_of_size(all, caps) return caps or not all and NONE_NAMED end
local function caps_now()
  if its_caps == nil then its_caps = caps_of_size(unpack(redis.call('HMGET', CAPACITY_SIZE, 'all', 'caps'))) end
  return its_caps
end

local function has_cap(caps, brain) return caps and brain and brain ~= '' and caps:find(' ' .. brain .. ' ', 1, true) end

-- What this script read, and counted on since: nobody else changes it meanwhile. nil: it is read when it is asked for.
local capacity_now

-- Also for a turn that goes on after it was parked, which takes no heed of capacity.
local function add_live(sid, tid, brain)
  local member, of_brain = live_members(sid, tid, brain)
  local is_new
  if of_brain and has_cap(caps_now(), brain) then
    is_new = redis.call('ZADD', LIVE_TURNS, 0, member, 0, of_brain) == 2
  else
    is_new = redis.call('ZADD', LIVE_TURNS, 0, member) == 1
  end
  if capacity_now and is_new then capacity_now.live = capacity_now.live + 1 else capacity_now = nil end
end

local function count_live(caps)
  local members = redis.call('ZCARD', LIVE_TURNS)
  return caps and members - redis.call('ZLEXCOUNT', LIVE_TURNS, '-', '(!') or members
end

local function read_capacity(tenant)
  local size = redis.call('HMGET', CAPACITY_SIZE, 'all', 'tenant', tenant, 'caps', 'stops')
  its_caps = caps_of_size(size[1], size[4])
  capacity_now = {all = tonumber(size[1] or FLEET_DEFAULT), share = size[2] or TENANT_DEFAULT, own = {[tenant] = size[3]},
    live = count_live(its_caps), has_stops = size[5]}
end

local function share_of(tenant)
  local own = capacity_now.own
  if own[tenant] == nil then own[tenant] = redis.call('HGET', CAPACITY_SIZE, tenant) end
  return tonumber(own[tenant] or capacity_now.share)
end

local function is_known_full() return capacity_now and capacity_now.live >= capacity_now.all end

-- Whether fewer turns of the tenant are live than its share is, whatever the capacity of all.
local function has_share_left(tenant)
  if not capacity_now then read_capacity(tenant) end
  local share = share_of(tenant)
  if capacity_now.live < share then return true end -- no tenant has more of them than there are
  return redis.call('ZLEXCOUNT', LIVE_TURNS, '[' .. tenant, '(' .. tenant:sub(1, -2) .. ';') < share
end

-- nil: a turn of the tenant may begin; else `full`, or `tenant`: only its own share is. And `caps_now`: whether its brain has
-- capacity for the turn is another question.
local function why_full(tenant)
  if not capacity_now then read_capacity(tenant) end
  local caps = its_caps
  if is_known_full() then return 'full', caps end
  return not has_share_left(tenant) and 'tenant' or nil, caps
end

-- How many more turns of a brain may begin. Negative where a cap was lowered, or turns went on that were parked.
local function capacity_of_brain(brain)
  local cap = redis.call('HGET', CAPACITY_SIZE, 'brain ' .. brain)
  if not cap then return math.huge end
  return tonumber(cap) - redis.call('ZLEXCOUNT', LIVE_TURNS, '[ ' .. brain .. ' ', '( ' .. brain .. '!')
end

local function brain_is_full(brain) return has_cap(caps_now(), brain) and capacity_of_brain(brain) <= 0 end
