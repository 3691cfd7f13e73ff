--[[
Claim the next step and start an attempt at it. A step is paid for once, however often it is attempted.

- `lost`: the charge for an attempt of the same owner that broke off, as a JSON array of spends. "" if it is unknown.
- `under_way`: the charge for this attempt if its end is never reported.
- `asked`: new for each attempt, so that a repeated call starts one attempt.
- `estimate`: compared with the bill of the step later. `tokens` is the worst case, which is checked against the budget.
- `drain`: how many of the oldest inputs of the mailbox the step consumes. Their messages (`items`) enter the history.
- `ready`: the newest readiness: `ready`, or a hold as JSON with its id.
- `full`: the percentage of the context that this step fills, if that is worth a warning, or else 0. It is published
  once per turn.
- `money`: the budgets to reserve in (lib/money), or "". MONEY means that one of them does not allow the step now.
  Nothing has begun, and a repeated call with the same `asked` counts once.

KEYS   turn budget history events spends mailbox receipts
ARGV   owner fence:n asked estimate:n tokens:n estimate_usd:f? shown:words lost under_way drain:n ready full:n
       money items...
REPLY  GO step:n attempt:n | SPENT what:steps/tokens/cost | MONEY why:wait/short window start:n wanted expected in_flight:n is_new:b | LOST
]]
-- @include lib/event
-- @include lib/owner_fence
-- @include lib/budget
-- @include lib/money
-- @include lib/own_history
-- @include lib/readiness
local t = read(turn, {'state', 'owner', 'fence', 'step', 'asked', 'thinking', 'thinking_step', 'attempt', 'estimate', 'estimate_usd',
  'isolated', 'context_full', 'under_way', 'money'})
if not is_owner(t, owner, fence) then return {'LOST'} end
local step, is_repeat, thinks = tonumber(t.step) + 1, t.asked == asked, t.thinking == '1'
if is_repeat and thinks then return {'GO', step, tonumber(t.attempt)} end

local function spent(what)
  if not is_repeat then emit(events, 'budget', {spent = what}) end
  redis.call('HSET', turn, 'asked', asked, 'thinking', '0')
  return {'SPENT', what}
end

if thinks and lost == '' then charge_thinking(budget, spends, t) end
if thinks then charge_spends(budget, spends, lost) end
if t.money then settle_money(turn, t.money, charged_usd) end
local too_much = would_pass(budget, tokens, estimate_usd)
if too_much then return spent(too_much) end
if claim_units(budget, 'steps', {tostring(step)})[1] == 'SPENT' then return spent('steps') end
local refused = money ~= '' and reserve_money(turn, money)
if refused then
  redis.call('HSET', turn, 'asked', asked, 'thinking', '0')
  return {'MONEY', unpack(refused)}
end
local attempt = t.thinking_step == tostring(step) and tonumber(t.attempt) + 1 or 1
local most_full = tonumber(t.context_full or 0)
redis.call('HSET', turn, 'thinking_step', step, 'thinking', '1', 'attempt', attempt, 'estimate', estimate,
  'estimate_usd', estimate_usd, 'asked', asked, 'aux_open', '', 'under_way', step .. ':' .. attempt .. ' ' .. under_way, 'context_full', math.max(full, most_full))
if shown ~= '' then redis.call('HSETNX', turn, 'shown', shown) end
for _ = 1, drain do
  local item = redis.call('LPOP', mailbox)
  redis.call('HINCRBY', turn, 'mail_bytes', -#item)
  local input = cjson.decode(item).client_message_id
  redis.call('HSET', receipts, input, 'consumed ' .. step)
  emit(events, 'input.consumed', {input = input, step = step})
end
use_own_history(t.isolated)
push(history, items)
if full > 0 and most_full == 0 then emit(events, 'notice', {context_full = full, step = step}) end
if ready ~= '' then set_readiness(ready) end
emit(events, 'step.started', {step = step, attempt = attempt})
return {'GO', step, attempt}
