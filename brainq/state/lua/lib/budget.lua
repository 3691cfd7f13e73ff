-- One claim of `amount` units. The same claim id pays once, whoever repeats it.
local function budget_take(budget_key, kind, id, amount)
  local field = 'claim:' .. kind .. ':' .. id
  if id ~= '' and redis.call('HEXISTS', budget_key, field) == 1 then return 'ALREADY' end
  local held = redis.call('HMGET', budget_key, kind .. '_used', kind .. '_max')
  local used = tonumber(held[1] or 0) or 0
  if used + amount > (tonumber(held[2] or 0) or 0) then return 'SPENT' end
  redis.call('HINCRBY', budget_key, kind .. '_used', amount)
  if id ~= '' then redis.call('HSET', budget_key, field, 1) end
  return 'CLAIMED'
end

-- What a step was estimated at and what it cost in the end: later estimates of the session are scaled by it.
local function learn_ratio(session_key, turn_key, input)
  if input > 0 then
    redis.call('HSET', session_key, 'known_input', input, 'known_estimate', redis.call('HGET', turn_key, 'estimate') or 0)
  end
end

-- What a model call of this size would pass: 'tokens', 'cost', or nil.
local function would_pass(budget_key, tokens, usd)
  local held = redis.call('HMGET', budget_key, 'tokens_max', 'input_tokens', 'output_tokens', 'cost_max_usd', 'cost_usd')
  local tokens_max, cost_max = tonumber(held[1] or ''), tonumber(held[4] or '')
  if tokens_max and tonumber(held[2] or 0) + tonumber(held[3] or 0) + tokens > tokens_max then return 'tokens' end
  if cost_max and tonumber(held[5] or 0) + (tonumber(usd) or 0) > cost_max then return 'cost' end
end

-- A model call that broke off, or whose worker died, is charged as it was estimated.
local function charge_lost(budget_key, spends_key, step, estimate, usd)
  estimate = tonumber(estimate or 0) or 0
  redis.call('HINCRBY', budget_key, 'input_tokens', estimate)
  local spend = {kind = 'lost', step = tonumber(step), input_tokens = estimate}
  if usd and usd ~= '' then
    redis.call('HINCRBYFLOAT', budget_key, 'cost_usd', usd)
    spend.cost_usd = tonumber(usd)
  end
  redis.call('RPUSH', spends_key, cjson.encode(spend))
end

local function add_usage(budget_key, input, output, cache_read, cache_creation, cost)
  redis.call('HINCRBY', budget_key, 'input_tokens', input)
  redis.call('HINCRBY', budget_key, 'output_tokens', output)
  if cache_read ~= 0 then redis.call('HINCRBY', budget_key, 'cache_read_tokens', cache_read) end
  if cache_creation ~= 0 then redis.call('HINCRBY', budget_key, 'cache_creation_tokens', cache_creation) end
  if cost ~= '' then redis.call('HINCRBYFLOAT', budget_key, 'cost_usd', cost) end
end
