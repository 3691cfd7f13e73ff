-- The places of one model in its window. A place counts for one window after its answer began (rate_settle notes when), or
-- without an answer for one window and `slack_ms`, within which a request arrives. So no window of the service holds more than
-- the limit. The place of a request whose process died counts, too.
-- `rule` holds what was learned of the service, `sum` of the tokens of all places, and the tokens of each place and ticket as
-- `t:ID`. Uses the names of the script.
-- @include lib/now
-- @include lib/fields
local KEEP_MS, LEARNED_MS, LATE_MS, CLOCK_ROOM_MS = 90000000, 3600000, 10000, 1000

-- Move all times nearer if the clock of Redis has stepped back.
local function mend_clock(seen, stopped_until)
  local back_ms = tonumber(seen or 0) - now
  if back_ms <= CLOCK_ROOM_MS then return stopped_until end
  for _, key in ipairs({places, due}) do
    for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -back_ms, id) end
  end
  stopped_until = stopped_until - back_ms
  redis.call('HSET', rule, 'stopped_until', stopped_until, 'seen', now)
  return stopped_until
end

local function least(given, learned, r)
  given, learned = tonumber(given), now < tonumber(r.learned_until or 0) and tonumber(learned or '') or nil
  return given and learned and math.min(given, learned) or given or learned
end

local function tokens_of(ids)
  local names, total = {}, 0
  for i, id in ipairs(ids) do names[i] = 't:' .. id end
  local found = #names > 0 and redis.call('HMGET', rule, unpack(names)) or {}
  for i, tokens in ipairs(found) do
    found[i] = tonumber(tokens or 0) or 0
    total = total + found[i]
  end
  return total, found, names
end

-- @include lib/tenant
local function count_out(over)
  local gone = {}
  for _, id in ipairs(over) do gone[tenant_of(id)] = (gone[tenant_of(id)] or 0) + 1 end
  for tenant, count in pairs(gone) do
    if redis.call('HINCRBY', by, tenant, -count) <= 0 then redis.call('HDEL', by, tenant) end
  end
end

-- Remove the places whose window is over. Returns the tokens of the remaining ones.
local function forget_over(sum)
  while true do
    local over = redis.call('ZRANGEBYSCORE', places, '-inf', now, 'LIMIT', 0, 500)
    if #over == 0 then return sum end
    local tokens, _, names = tokens_of(over)
    sum = math.max(0, sum - tokens)
    redis.call('ZREM', places, unpack(over))
    count_out(over)
    redis.call('HDEL', rule, unpack(names))
    redis.call('HSET', rule, 'sum', sum)
  end
end

-- Return when the place at this index ends. -1 is the last one.
local function score_at(i) return tonumber(redis.call('ZRANGE', places, i, i, 'WITHSCORES')[2] or '') end

-- Return the end of all current and expected places, plus this many windows.
local function rounds_later(rounds)
  local last = score_at(-1) or tonumber(redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2] or now)
  return last + window_ms * (1 + math.floor(rounds))
end

-- Return the index of the place with whose end this many tokens are free, oldest first. If all places are not enough,
-- returns nil and the missing tokens.
local function place_that_frees(tokens)
  local from = 0
  while true do
    local part = redis.call('ZRANGE', places, from, from + 199)
    if #part == 0 then return nil, tokens end
    local _, counts = tokens_of(part)
    for i, count in ipairs(counts) do
      tokens = tokens - count
      if tokens <= 0 then return from + i - 1 end
    end
    from = from + 200
  end
end
