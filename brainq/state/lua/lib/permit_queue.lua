-- The queue for a model's places, in which tenants take turns (start-time fair queueing). A tenant has a slot in `line` for each of its
-- requests that wait; a slot's score is its tag: the `present`, or where that is later the end of what its tenant asked for before.
-- Tags are shares of a window, a thousand millionth each, so that the cost of a request is what it takes of the limits. `present` is
-- the tag of the last that went, or somewhat later; `tenants` has each tenant's end until the present has reached it.
-- Which of a tenant's requests has which of its slots is in `order`: `TENANT RANK NUMBER TICKET`, the lower rank first, of a rank
-- who came first. `rule` has `m:TICKET`, its word there, and `h:TENANT`, the number of the tenant's first slot.
-- Uses the names of the script, and lib/rates.
local A_WINDOW, UNKNOWN_MOST, SLOWEST = 1e9, 1000, 100

-- The share of a window that a request takes of what it takes most of.
local function cost_of(tokens, most, most_tokens)
  local share = math.max(most and 1 / most or 0, most_tokens and math.min(1, tokens / most_tokens) or 0)
  return math.ceil(A_WINDOW * (share > 0 and share or 1 / UNKNOWN_MOST))
end

-- A hundredth of a request's cost at least for each that goes: so tenants that come anew, however many, starve nobody.
local function move_on(present)
  redis.call('HSET', rule, 'present', present)
  redis.call('ZREMRANGEBYSCORE', tenants, '-inf', present)
end

local function waiting_of(tenant) return redis.call('ZLEXCOUNT', order, '[' .. tenant .. ' ', '(' .. tenant .. '!') end

local function first_of(tenant, count)
  local found = redis.call('ZRANGEBYLEX', order, '[' .. tenant .. ' ', '(' .. tenant .. '!', 'LIMIT', 0, count)
  for i, word in ipairs(found) do found[i] = word:match('^%S+ %d %d+ (.*)$') end
  return found
end

local function slot_of(tenant, at) return tenant .. ' ' .. (tonumber(redis.call('HGET', rule, 'h:' .. tenant) or 0) + at) end

local function join_queue(ticket, rank, tag)
  local tenant = tenant_of(ticket)
  redis.call('ZADD', line, tag, slot_of(tenant, waiting_of(tenant)))
  local word = string.format('%s %d %012d %s', tenant, rank, redis.call('HINCRBY', rule, 'joined', 1), ticket)
  redis.call('ZADD', order, 0, word)
  redis.call('HSET', rule, 'm:' .. ticket, word)
end

-- Who goes takes its tenant's first slot, whichever is its own. Who does not leaves the last one: its tenant has not used what it
-- stood for. Returns the slot's tag; nil for who is not queued.
local function leave_queue(ticket, goes)
  local word = redis.call('HGET', rule, 'm:' .. ticket)
  if not word then return nil end
  local tenant = tenant_of(ticket)
  local count = waiting_of(tenant)
  local slot = slot_of(tenant, goes and 0 or count - 1)
  local tag = tonumber(redis.call('ZSCORE', line, slot))
  redis.call('ZREM', line, slot)
  redis.call('ZREM', order, word)
  redis.call('ZREM', due, ticket)
  redis.call('HDEL', rule, 'm:' .. ticket, 't:' .. ticket)
  if count == 1 then
    redis.call('HDEL', rule, 'h:' .. tenant)
  elseif goes then
    redis.call('HINCRBY', rule, 'h:' .. tenant, 1)
  end
  if not goes then redis.call('ZADD', tenants, 'XX', tag, tenant) end
  return tag
end

-- First in the queue and long overdue: its process died. It delays nobody.
local function forget_absent(ticket)
  while true do
    local slot = redis.call('ZRANGE', line, 0, 0)[1]
    local first = slot and first_of(slot:match('^%S+'), 1)[1]
    if not slot or first == ticket then return end
    local at = first and redis.call('ZSCORE', due, first)
    if at and tonumber(at) + LATE_MS >= now then return end
    if not (first and leave_queue(first)) then redis.call('ZREM', line, slot) end
  end
end

-- How many are ahead of it, of all and of its tenant; whether it is queued, and the tag of a slot that its tenant gets anew.
local function queue_position(ticket, rank, present)
  local tenant = tenant_of(ticket)
  local next_tag = math.max(present, tonumber(redis.call('ZSCORE', tenants, tenant) or 0))
  local word = redis.call('HGET', rule, 'm:' .. ticket)
  local before = word and '(' .. word or '(' .. tenant .. ' ' .. (rank + 1)
  local of_its_own = redis.call('ZLEXCOUNT', order, '[' .. tenant .. ' ', before)
  -- Who is new gets the slot of the first of its tenant behind it, who gets the next one.
  local ahead = redis.call('ZRANK', line, slot_of(tenant, of_its_own)) or redis.call('ZCOUNT', line, '-inf', next_tag)
  return ahead, of_its_own, word, next_tag
end

-- The tokens of those who have the first slots: of at most a thousand.
local function tokens_ahead(ahead)
  local counts, ids = {}, {}
  for _, slot in ipairs(redis.call('ZRANGE', line, 0, math.min(ahead, 1000) - 1)) do
    local tenant = slot:match('^%S+')
    counts[tenant] = (counts[tenant] or 0) + 1
  end
  for tenant, count in pairs(counts) do
    for _, id in ipairs(first_of(tenant, count)) do ids[#ids + 1] = id end
  end
  return tokens_of(ids)
end
