--[[
Claim the next step and start an attempt at it. A step is paid for once, however often it is attempted; an
attempt of the same owner that broke off is charged as an estimate. `asked` is new for each attempt, so that
asking twice with the same one is asking once.

KEYS   turn budget events spends
ARGV   owner fence:n asked estimate:n reserve:n estimate_usd shown
REPLY  GO step attempt | SPENT what | LOST
]]
-- @include lib/event
-- @include lib/holds
-- @include lib/budget
if not holds(turn, owner, fence) then return {'LOST'} end
local known = redis.call('HMGET', turn, 'step', 'asked', 'thinking', 'thinking_step', 'attempt', 'estimate')
local step, is_repeat = tonumber(known[1]) + 1, known[2] == asked
if is_repeat and known[3] == '1' then return {'GO', step, tonumber(known[5])} end

local function spent(what)
  if not is_repeat then emit(turn, events, 'budget', {spent = what}) end
  redis.call('HSET', turn, 'asked', asked)
  return {'SPENT', what}
end

if known[3] == '1' then
  charge_lost(budget, spends, known[4], known[6])
  redis.call('HSET', turn, 'thinking', '0')
end
local held = redis.call('HMGET', budget, 'tokens_max', 'input_tokens', 'output_tokens', 'cost_max_usd', 'cost_usd')
local tokens_max, cost_max = tonumber(held[1] or ''), tonumber(held[4] or '')
if tokens_max and (tonumber(held[2] or 0) + tonumber(held[3] or 0) + estimate + reserve) > tokens_max then
  return spent('tokens')
end
if cost_max and tonumber(held[5] or 0) + (tonumber(estimate_usd) or 0) > cost_max then return spent('cost') end
if budget_take(budget, 'steps', tostring(step), 1) == 'SPENT' then return spent('steps') end
local attempt = known[4] == tostring(step) and tonumber(known[5]) + 1 or 1
if shown ~= '' then redis.call('HSETNX', turn, 'shown', shown) end
redis.call('HSET', turn, 'thinking_step', step, 'thinking', '1', 'attempt', attempt, 'estimate', estimate,
  'asked', asked)
emit(turn, events, 'step.started', {step = step, attempt = attempt})
return {'GO', step, attempt}
