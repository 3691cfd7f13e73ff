-- A list of the broker's is kept short, and tenants take turns for it (start-time fair queueing): what finds it full, or others
-- waiting, waits in `{LIST}:queue`, its score one more than that of its tenant's last, or than that of the last that went. Whoever
-- claims a bell of the list, and the sweeper, publishes what is next. So of one tenant's bells at most a list full is before
-- another's. `{LIST}:tenants` has each tenant's last score, and as `present` that of the last that went.
-- In outbox mode the list's length is not known: all bells are published at once.
-- @include lib/fields
-- @include lib/tenant
-- @include lib/ring
local MOST_TRIED, KEPT_MS = 1000, 86400000

-- So many that no worker is idle between two claims, and so few that another tenant's is served after some services: those of
-- reads are run side by side by a process, and a write by one thread.
local function places_of(list) return list == 'finalize' and 8 or list == 'read_only' and 16 or 2 end

local function queue_of(list) return OUTBOX_PREFIX .. '{' .. list .. '}:queue' end
local function tenants_of(list) return OUTBOX_PREFIX .. '{' .. list .. '}:tenants' end

local function is_waited_for(list) return redis.call('EXISTS', queue_of(list)) == 1 end

-- Whether a bell may go into the list at once. Into an empty one it may, whoever waits: its claim lets them in.
local function has_place(list)
  local key = bell_key(list)
  local length = key == '' and 0 or redis.call('LLEN', key)
  return length == 0 or length < places_of(list) and not is_waited_for(list)
end

local function is_queued(list, member) return redis.call('ZSCORE', queue_of(list), member) end

-- Where nobody waits any more, nothing is known of whose turn it was.
local function is_over(list) return not is_waited_for(list) and redis.call('DEL', tenants_of(list)) end

local function leave_queue(list, member)
  if redis.call('ZREM', queue_of(list), member) == 1 then is_over(list) end
end

-- `publish(member)` rings for a member, unless it needs no bell any more, and says whether the list is longer by it.
-- @lazy
local function fill_queue(list, publish)
  if not is_waited_for(list) then return end
  local free, present = places_of(list) - redis.call('LLEN', bell_key(list)), nil
  for _ = 1, MOST_TRIED do
    local first = free > 0 and redis.call('ZPOPMIN', queue_of(list)) or {}
    if not first[1] then break end
    present = first[2]
    if publish(first[1]) then free = free - 1 end
  end
  if not present or is_over(list) then return end
  redis.call('ZREMRANGEBYSCORE', tenants_of(list), '-inf', '(' .. present)
  redis.call('ZADD', tenants_of(list), present, 'present')
end

-- @lazy
local function join_queue(list, sid, member, publish)
  local queue, tenants, tenant = queue_of(list), tenants_of(list), tenant_of(sid)
  local last = redis.call('ZMSCORE', tenants, tenant, 'present')
  local score = math.max(tonumber(last[1] or 0), tonumber(last[2] or 0)) + 1
  redis.call('ZADD', queue, score, member)
  redis.call('ZADD', tenants, score, tenant)
  for _, key in ipairs({queue, tenants}) do redis.call('PEXPIRE', key, KEPT_MS) end
  fill_queue(list, publish)
end
