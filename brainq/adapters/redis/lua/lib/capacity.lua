-- The number of turns that may be live at once: in the fleet, of one tenant, and of one brain. LIVE_TURNS has the live
-- turns, without parked ones. Only membership in it is counted, so no count can leak. A turn of a brain with a cap is
-- in it a second time, as ` BRAIN MEMBER`, by which the brain's turns are counted. lib/turn_queue has the sessions that
-- wait for capacity.
-- @include lib/now
-- @include lib/tenant
-- @include lib/ring
local CAPACITY = OUTBOX_PREFIX .. '{room}:'
local CAPACITY_SIZE = CAPACITY .. 'size'
local LIVE_TURNS = CAPACITY .. 'live'
local FLEET_DEFAULT, TENANT_DEFAULT = 125, 88 -- before a sweeper has set the size: capacity for one coordinator

local function live_member(sid, tid) return (sid:find(':', 1, true) and '' or ':') .. sid .. ' ' .. tid end

-- Return one member, or two. `brain` is nil or empty if the turn names none.
local function live_members(sid, tid, brain)
  local member = live_member(sid, tid)
  if not brain or brain == '' then return member end
  return member, ' ' .. brain .. ' ' .. member
end

-- The names of the brains with a cap, separated and surrounded by blanks, or false if none has one: then nothing is
-- counted by brain, and no session waits for a brain. If the size is not set or has expired, the brains are unknown,
-- and none is named. It is read once per script.
local its_caps
local NONE_NAMED = '  '
local function caps_of_size(all, caps) return caps or not all and NONE_NAMED end
local function caps_now()
  if its_caps == nil then its_caps = caps_of_size(unpack(redis.call('HMGET', CAPACITY_SIZE, 'all', 'caps'))) end
  return its_caps
end

local function has_cap(caps, brain) return caps and brain and brain ~= '' and caps:find(' ' .. brain .. ' ', 1, true) end

-- The capacity as this script has read it, with its own changes. Nothing else changes it in the meantime. nil means
-- that it is read when it is needed.
local capacity_now

-- This is also used for a turn that continues after it was parked, which ignores capacity.
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

-- Return whether fewer turns of the tenant are live than its share, regardless of the capacity of the fleet.
local function has_share_left(tenant)
  if not capacity_now then read_capacity(tenant) end
  local share = share_of(tenant)
  if capacity_now.live < share then return true end -- no tenant has more live turns than the fleet
  return redis.call('ZLEXCOUNT', LIVE_TURNS, '[' .. tenant, '(' .. tenant:sub(1, -2) .. ';') < share
end

-- Return why a turn of the tenant may not begin: `full`, `tenant` if only its share is used up, or nil if it may. Also
-- returns `caps_now`, because its brain may still be full.
local function why_full(tenant)
  if not capacity_now then read_capacity(tenant) end
  local caps = its_caps
  if is_known_full() then return 'full', caps end
  return not has_share_left(tenant) and 'tenant' or nil, caps
end

-- Return how many more turns of a brain may begin. It is negative if a cap was lowered, or if parked turns have
-- continued.
local function capacity_of_brain(brain)
  local cap = redis.call('HGET', CAPACITY_SIZE, 'brain ' .. brain)
  if not cap then return math.huge end
  return tonumber(cap) - redis.call('ZLEXCOUNT', LIVE_TURNS, '[ ' .. brain .. ' ', '( ' .. brain .. '!')
end

local function brain_is_full(brain) return has_cap(caps_now(), brain) and capacity_of_brain(brain) <= 0 end
