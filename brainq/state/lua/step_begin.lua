--[[
Claim the next step and start an attempt at it. A step is paid for once, however often it is attempted.

KEYS   turn budget events
ARGV   owner fence:n estimate:n estimate_usd
REPLY  GO step attempt | SPENT what | LOST
]]
-- @include lib/event
-- @include lib/holds
-- @include lib/budget
if not holds(turn, owner, fence) then return {'LOST'} end
local step = tonumber(redis.call('HGET', turn, 'step')) + 1
local held = redis.call('HMGET', budget, 'tokens_max', 'input_tokens', 'output_tokens', 'cost_max_usd', 'cost_usd')
local tokens_max, cost_max = tonumber(held[1] or ''), tonumber(held[4] or '')
if tokens_max and (tonumber(held[2] or 0) + tonumber(held[3] or 0) + estimate) > tokens_max then
  emit(turn, events, 'budget', {spent = 'tokens'})
  return {'SPENT', 'tokens'}
end
if cost_max and tonumber(held[5] or 0) + (tonumber(estimate_usd) or 0) > cost_max then
  emit(turn, events, 'budget', {spent = 'cost'})
  return {'SPENT', 'cost'}
end
if budget_take(budget, 'steps', tostring(step), 1) == 'SPENT' then
  emit(turn, events, 'budget', {spent = 'steps'})
  return {'SPENT', 'steps'}
end
local attempt = 1
if redis.call('HGET', turn, 'thinking_step') == tostring(step) then
  attempt = tonumber(redis.call('HGET', turn, 'attempt')) + 1
end
redis.call('HSET', turn, 'thinking_step', step, 'thinking', '1', 'attempt', attempt, 'estimate', estimate)
emit(turn, events, 'step.started', {step = step, attempt = attempt})
return {'GO', step, attempt}
