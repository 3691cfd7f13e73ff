-- The line for a model's places, in which tenants take turns (start-time fair queueing). A ticket's score in `line` is its tag: the
-- `present`, or where that is later the end of what its tenant asked for before. Tags are shares of a window, a thousand millionth
-- each, so that the cost of a request is what it takes of the limits. `present` is the tag of the last that went, or somewhat
-- later; `tenants` has each tenant's end until the present has reached it. Uses the names of the script, and lib/rates.
local A_WINDOW, UNKNOWN_MOST, SLOWEST = 1e9, 1000, 100

-- The share of a window that a request takes of what it takes most of.
local function cost_of(tokens, most, most_tokens)
  local share = math.max(most and 1 / most or 0, most_tokens and math.min(1, tokens / most_tokens) or 0)
  return math.ceil(A_WINDOW * (share > 0 and share or 1 / UNKNOWN_MOST))
end

local function pay(tenant, until_tag) redis.call('ZADD', tenants, until_tag, tenant) end

-- A hundredth of a request's cost at least for each that goes: so tenants that come anew, however many, starve nobody.
local function move_on(present)
  redis.call('HSET', rule, 'present', present)
  redis.call('ZREMRANGEBYSCORE', tenants, '-inf', present)
  return present
end

-- First in line and long overdue: its turn was cancelled, or its process died. It holds nobody up.
local function forget_absent(ticket, present)
  while true do
    local first = redis.call('ZRANGE', line, 0, 0, 'WITHSCORES')
    if not first[1] or first[1] == ticket then return present end
    local at = redis.call('ZSCORE', due, first[1])
    if at and tonumber(at) + LATE_MS >= now then return present end
    leave_line(first[1])
    present = move_on(math.max(present, tonumber(first[2])))
  end
end

-- Its tag, how many are ahead of it, and whether it is not in the line yet.
local function place_in_line(ticket, present)
  local tag = tonumber(redis.call('ZSCORE', line, ticket) or '')
  if tag then return tag, redis.call('ZRANK', line, ticket), false end
  tag = math.max(present, tonumber(redis.call('ZSCORE', tenants, tenant_of(ticket)) or 0))
  return tag, redis.call('ZCOUNT', line, '-inf', tag), true
end
