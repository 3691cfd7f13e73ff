--[[
Commit a reply with calls: the reply enters the history, the trace of its calls is written, and the first wave opens.
`calls` is a JSON array in the model's order; a call that a gate denied has its message. `problem` says what was wrong
with the reply, or is empty. `notes` follow a reply without calls and explain this to the model. `lost` is the cost of
earlier requests for the reply that broke off, as a JSON array of spends. The calls are paid for here. BUDGET means that
`refused` exceed the budget. The others are paid for, and nothing else has changed; the caller commits again with those
denied.
`stay`: the queues of what the thread continues with, by `visit` (lib/stay). CALL or TURN: it has that; to its owner it says the
same again. `declined` is the reason if the thread does not have what was opened.

KEYS   turn session budget trace history events guard blocked spends notices run
ARGV   sid tid owner fence:n step:n item calls block:words tail problem input:n output:n cache_read:n
       cache_creation:n cost:f? spend lost stay:words visit notes...
REPLY  COMMITTED declined... | TURN fence:n now:n found... | BUDGET refused:words | LOST
       | CALL call attempt:n spec cap_ms:n remaining_ms:n effect:Effect tool step:n edited:b brain waited_ms:n lane_waited_ms:n
]]
-- @include lib/owner_fence
-- @include lib/budget
-- @include lib/money
-- @include lib/plan
-- @include lib/waves
-- @include lib/stay_call
-- @include lib/own_history
-- @include lib/owner_gone
local t = read(turn, {'state', 'owner', 'fence', 'step', 'attempt', 'estimate', 'isolated', 'cancel', 'holds',
  'write_epoch', 'brain', 'money'})
if not is_owner(t, owner, fence) or tonumber(t.step) ~= step - 1 then return stayed_before(stay, visit) or {'LOST'} end
use_own_history(t.isolated)

local plan, ids, refused = cjson.decode(calls), {}, {}
for _, call in ipairs(plan) do
  if call.denied == '' then ids[#ids + 1] = call.id end
end
if #ids > 0 then
  local expired = tonumber(redis.call('HGET', budget, 'deadline')) <= now
  for i, word in ipairs(claim_units(budget, 'tool_calls', ids, expired)) do
    if word == 'SPENT' then refused[#refused + 1] = ids[i] end
  end
  if #refused > 0 then return {'BUDGET', table.concat(refused, ' ')} end
end

push(history, {item, unpack(notes)})
if tail ~= '' then emit(events, 'text.delta', {step = step, attempt = tonumber(t.attempt), text = tail}) end
charge_spends(budget, spends, lost)
add_usage(budget, input, output, cache_read, cache_creation, cost)
redis.call('RPUSH', spends, spend)
if t.money then settle_money(turn, t.money, charged_usd) end
learn_ratio(session, t.estimate, input)
local waves, asked, known = plan_calls(plan)
go_on(turn, 'step', step, 'n_calls', #plan, 'wave', 1, 'waves', waves, 'thinking', '0', 'awaits', 'calls', 'owner', '')
if problem ~= '' then redis.call('HINCRBY', turn, 'problem:' .. problem, 1) end
emit(events, 'step.ended', {step = step, calls = #plan, plan = asked, input_tokens = input, output_tokens = output,
  problem = problem ~= '' and problem or nil})
for i, call in ipairs(plan) do
  if call.denied ~= '' then
    end_call(call.id, 'denied', call.message, call.denied, 0, call.tool)
    known[i].status = 'denied'
  end
end
for name in block:gmatch('%S+') do redis.call('SADD', blocked, name) end
t.step, t.n_calls, t.wave, t.waves = step, #plan, 1, waves
offer_calls(stay, visit)
open_waves(t, known)
return stayed_reply() or {'COMMITTED', declined}
