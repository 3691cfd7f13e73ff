-- Keep the broker's lists short, and let tenants take turns for them (start-time fair queueing). A bell that finds its
-- list full, or others waiting, waits in `{LIST}:queue`. Its score is one more than that of its tenant's last bell, or
-- of the last bell that was published, if that is higher. Whoever claims a bell of the list, and the sweeper, publishes
-- the next ones. So at most one list full of one tenant's bells is ahead of another tenant's. `{LIST}:tenants` has each
-- tenant's last score, and `present`, the score of the last published bell. In outbox mode the length of the list is
-- unknown, and all bells are published at once.
-- @include lib/fields
-- @include lib/tenant
-- @include lib/ring
local MOST_TRIED, KEPT_MS = 1000, 86400000

-- The lengths are large enough that no worker is idle between two claims, and small enough that a bell of another
-- tenant is served soon. One process runs several reads side by side, but a single thread runs writes.
local function places_of(list) return list == 'finalize' and 8 or list == 'read_only' and 16 or 2 end

local function queue_of(list) return OUTBOX_PREFIX .. '{' .. list .. '}:queue' end
local function tenants_of(list) return OUTBOX_PREFIX .. '{' .. list .. '}:tenants' end

local function is_waited_for(list) return redis.call('EXISTS', queue_of(list)) == 1 end

-- Return whether a bell may go into the list at once. It may always go into an empty list, because its claim lets the
-- waiting ones in.
local function has_place(list)
  local key = bell_key(list)
  local length = key == '' and 0 or redis.call('LLEN', key)
  return length == 0 or length < places_of(list) and not is_waited_for(list)
end

local function is_queued(list, member) return redis.call('ZSCORE', queue_of(list), member) end

-- Forget the order of the tenants once no bell waits any more.
local function is_over(list) return not is_waited_for(list) and redis.call('DEL', tenants_of(list)) end

local function leave_queue(list, member)
  if redis.call('ZREM', queue_of(list), member) == 1 then is_over(list) end
end

-- Publish waiting bells while the list has free places. `publish(member)` rings for a member unless it needs no bell
-- any more, and returns whether the list has grown.
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
