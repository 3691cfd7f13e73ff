--[[
Claim the next step and start an attempt at it. A step is paid for once, however often it is attempted; an
attempt of the same owner that broke off is charged as an estimate. `asked` is new for each attempt, so that
asking twice with the same one is asking once. `estimate` is compared with what the step is billed for in the end;
`tokens` is the most it is thought to take, and what the budget is held against.
With the step the input it reads is consumed: the `drain` oldest of the mailbox, whose messages (`items`) enter the
history. `ready` is the newest word about readiness: `ready`, or a hold as JSON with its id. `full` is how much of the
context this step fills, in per cent, where that is worth a warning, else 0: it is told once a turn.

KEYS   turn budget history events spends mailbox receipts
ARGV   owner fence:n asked estimate:n tokens:n estimate_usd:f? shown:words drain:n ready full:n items...
REPLY  GO step:n attempt:n | SPENT what:steps/tokens/cost | LOST
]]
-- @include lib/event
-- @include lib/holds
-- @include lib/budget
-- @include lib/history
-- @include lib/readiness
if not holds(turn, owner, fence) then return {'LOST'} end
local known = redis.call('HMGET', turn, 'step', 'asked', 'thinking', 'thinking_step', 'attempt', 'estimate', 'estimate_usd')
local step, is_repeat = tonumber(known[1]) + 1, known[2] == asked
if is_repeat and known[3] == '1' then return {'GO', step, tonumber(known[5])} end

local function spent(what)
  if not is_repeat then emit(turn, events, 'budget', {spent = what}) end
  redis.call('HSET', turn, 'asked', asked)
  return {'SPENT', what}
end

if known[3] == '1' then
  charge_lost(budget, spends, known[4], known[6], known[7])
  redis.call('HSET', turn, 'thinking', '0')
end
local too_much = would_pass(budget, tokens, estimate_usd)
if too_much then return spent(too_much) end
if budget_take(budget, 'steps', tostring(step), 1) == 'SPENT' then return spent('steps') end
local attempt = known[4] == tostring(step) and tonumber(known[5]) + 1 or 1
if shown ~= '' then redis.call('HSETNX', turn, 'shown', shown) end
redis.call('HSET', turn, 'thinking_step', step, 'thinking', '1', 'attempt', attempt, 'estimate', estimate, 'estimate_usd', estimate_usd,
  'asked', asked, 'aux_open', '')
for i = 1, drain do
  local item = redis.call('LPOP', mailbox)
  redis.call('HINCRBY', turn, 'mail_bytes', -#item)
  local input = cjson.decode(item).client_message_id
  redis.call('HSET', receipts, input, 'consumed ' .. step)
  emit(turn, events, 'input.consumed', {input = input, step = step})
end
for _, message in ipairs(items) do redis.call('RPUSH', history, message) end
if full > 0 then
  local most = tonumber(redis.call('HGET', turn, 'context_full') or 0)
  if most == 0 then emit(turn, events, 'notice', {context_full = full, step = step}) end
  redis.call('HSET', turn, 'context_full', math.max(most, full))
end
if ready ~= '' then set_readiness(ready) end
emit(turn, events, 'step.started', {step = step, attempt = attempt})
return {'GO', step, attempt}
