-- The budget of a turn: claiming units, and charging usage.
-- @include lib/fields

-- Claim one unit for each id, in order, and return one word for each. A repeated id pays once, but an empty id pays
-- each time. Nothing new is claimed if `expired`.
local function claim_units(budget_key, kind, ids, expired)
  local names = {kind .. '_used', kind .. '_max'}
  for i, id in ipairs(ids) do names[i + 2] = 'claim:' .. kind .. ':' .. id end
  local held = redis.call('HMGET', budget_key, unpack(names))
  local used, most = tonumber(held[1] or 0) or 0, tonumber(held[2] or 0) or 0
  local words, paid, is_paid = {}, {}, {}
  for i, id in ipairs(ids) do
    if id ~= '' and (held[i + 2] or is_paid[id]) then
      words[i] = 'ALREADY'
    elseif used + 1 > most or expired then
      words[i] = 'SPENT'
    else
      words[i], used, is_paid[id] = 'CLAIMED', used + 1, true
      if id ~= '' then
        paid[#paid + 1] = names[i + 2]
        paid[#paid + 1] = 1
      end
    end
  end
  if next(is_paid) then redis.call('HSET', budget_key, names[1], used, unpack(paid)) end
  return words
end

-- Store the estimate and the real input of a step, by which later estimates of the session are scaled.
local function learn_ratio(session_key, estimate, input)
  if input > 0 then redis.call('HSET', session_key, 'known_input', input, 'known_estimate', estimate or 0) end
end

-- Return the limit that a model call of this size would exceed: 'tokens', 'cost', or nil.
local function would_pass(budget_key, tokens, usd)
  local b = read(budget_key, {'tokens_max', 'input_tokens', 'output_tokens', 'cost_max_usd', 'cost_usd'})
  local tokens_max, cost_max = tonumber(b.tokens_max or ''), tonumber(b.cost_max_usd or '')
  if tokens_max and tonumber(b.input_tokens or 0) + tonumber(b.output_tokens or 0) + tokens > tokens_max then
    return 'tokens'
  end
  if cost_max and tonumber(b.cost_usd or 0) + (tonumber(usd) or 0) > cost_max then return 'cost' end
end

-- the US dollars that this script has charged
local charged_usd = 0

-- Add usage, and never subtract any: a negative count from a worker of an earlier build counts as 0.
local function add_usage(budget_key, input, output, cache_read, cache_creation, cost)
  redis.call('HINCRBY', budget_key, 'input_tokens', math.max(0, input))
  redis.call('HINCRBY', budget_key, 'output_tokens', math.max(0, output))
  if cache_read > 0 then redis.call('HINCRBY', budget_key, 'cache_read_tokens', cache_read) end
  if cache_creation > 0 then redis.call('HINCRBY', budget_key, 'cache_creation_tokens', cache_creation) end
  if cost ~= '' then
    local usd = math.max(0, tonumber(cost))
    redis.call('HINCRBYFLOAT', budget_key, 'cost_usd', usd > 0 and cost or 0)
    charged_usd = charged_usd + usd
  end
end

-- Charge model calls that broke off, given as a JSON array of spends. "" charges nothing.
local function charge_spends(budget_key, spends_key, list)
  for _, spend in ipairs(list ~= '' and cjson.decode(list) or {}) do
    add_usage(budget_key, spend.input_tokens or 0, spend.output_tokens or 0, spend.cache_read_tokens or 0,
      spend.cache_creation_tokens or 0, spend.cost_usd or '')
    redis.call('RPUSH', spends_key, cjson.encode(spend))
  end
end

-- Charge a model call whose end is never reported. `known` is its owner's last report, which begins with the word that
-- it belongs to (`mark`). If the report is missing or belongs to another call, the call's initial estimate is charged.
-- @lazy
local function charge_unknown(budget_key, spends_key, known, mark, step, estimate, usd)
  local of, list = (known or ''):match('^(%S+) (.*)$')
  if of == mark and list ~= '' then return charge_spends(budget_key, spends_key, list) end
  local spend = {kind = 'lost', step = tonumber(step), input_tokens = tonumber(estimate or 0) or 0, estimated = true,
    cost_usd = tonumber(usd or '')}
  charge_spends(budget_key, spends_key, cjson.encode({spend}))
end

-- Charge the attempt at a step that is in progress and whose end is never reported. `t` has the turn's fields.
local function charge_thinking(budget_key, spends_key, t)
  local mark = (t.thinking_step or '') .. ':' .. (t.attempt or '')
  charge_unknown(budget_key, spends_key, t.under_way, mark, t.thinking_step, t.estimate, t.estimate_usd)
end
