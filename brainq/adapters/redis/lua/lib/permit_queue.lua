-- The queue of requests that wait for a place of a model, in which tenants take turns: start-time fair queueing.
--
-- Each waiting request gives its tenant one slot in `line`. The score of a slot is its tag, a point on a scale of cost: 1e9 is all
-- that one window allows. `present` is the tag of the last request that went. A tenant's new slot has the tag at which its
-- previous request ends (`tenants`), but at least the present; it moves that end by the cost of the request.
--
-- Three tenants, five tickets, each of cost 10, present 100. a asked three times, then b and c once:
--
--   tag        100       110       120           a's end in `tenants` is now 130, b's and c's 110
--   line      a 0  b 0   a 1       a 2
--             c 0
--   order     `a 2 1 t1`, `a 2 2 t2`, `a 2 3 t3`, `b 2 4 t4`, `c 2 5 t5`
--
-- They go in the order of the tags: t1, t4, t5, t2, t3. The flood of a delays b and c by one request. `order` has which request
-- of a tenant takes which of its slots: `TENANT RANK NUMBER TICKET`, the lower rank first, then the earlier. So a request of
-- rank 1 of a would take slot `a 0`, and t1 to t3 would each move to the next slot.
--
-- Fields of `rule`: `m:TICKET` is the member of a ticket in `order`, `h:TENANT` the number of the first slot of a tenant, `t:ID`
-- the tokens of a ticket or a place. Uses the names of the script, and lib/rates.
local A_WINDOW, UNKNOWN_MOST, SLOWEST = 1e9, 1000, 100

-- Return the cost of a request: the largest share of a limit that it takes.
local function cost_of(tokens, most, most_tokens)
  local share = math.max(most and 1 / most or 0, most_tokens and math.min(1, tokens / most_tokens) or 0)
  return math.ceil(A_WINDOW * (share > 0 and share or 1 / UNKNOWN_MOST))
end

-- Set the present. It moves by at least a hundredth of the cost of each request that goes, so that new tenants cannot starve
-- others, however many come.
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

-- Take a ticket out of the queue. A request that goes uses the first slot of its tenant; one that gives up frees the last slot,
-- which its tenant has not used. Returns the tag of that slot, or nil if the ticket is not queued.
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

-- Take requests out of the head of the queue that are long overdue: their processes died.
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

-- Return how many requests are ahead of a ticket, how many of these are of its tenant, its member in `order` (nil if it is not
-- queued), and the tag that the next slot of its tenant gets.
local function queue_position(ticket, rank, present)
  local tenant = tenant_of(ticket)
  local next_tag = math.max(present, tonumber(redis.call('ZSCORE', tenants, tenant) or 0))
  local word = redis.call('HGET', rule, 'm:' .. ticket)
  local before = word and '(' .. word or '(' .. tenant .. ' ' .. (rank + 1)
  local of_its_own = redis.call('ZLEXCOUNT', order, '[' .. tenant .. ' ', before)
  -- A new ticket takes the slot of the first ticket of its tenant that is behind it, which moves to the next slot.
  local ahead = redis.call('ZRANK', line, slot_of(tenant, of_its_own)) or redis.call('ZCOUNT', line, '-inf', next_tag)
  return ahead, of_its_own, word, next_tag
end

-- Return the tokens of the requests ahead, of at most a thousand.
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
