--[[
Commit a reply that asks for calls: the reply enters the history, the calls their trace, the first wave opens.
`calls` is a JSON array in the model's order; a call that a gate denied carries its message. `problem` says what was
wrong with the reply, where something was; `notes` follow a reply without calls and tell the model.

KEYS   turn session budget trace history events guard blocked spends
ARGV   sid tid owner fence:n step:n item calls block:words tail problem input:n output:n cache_read:n
       cache_creation:n cost:f? spend notes...
REPLY  COMMITTED | LOST
]]
-- @include lib/holds
-- @include lib/budget
-- @include lib/plan
-- @include lib/waves
-- @include lib/lost
if not holds(turn, owner, fence) or tonumber(redis.call('HGET', turn, 'step')) ~= step - 1 then return {'LOST'} end

redis.call('RPUSH', history, item)
for _, note in ipairs(notes) do redis.call('RPUSH', history, note) end
if tail ~= '' then
  emit(turn, events, 'text.delta', {step = step, attempt = tonumber(redis.call('HGET', turn, 'attempt')), text = tail})
end
add_usage(budget, input, output, cache_read, cache_creation, cost)
redis.call('RPUSH', spends, spend)
learn_ratio(session, turn, input)
local plan = cjson.decode(calls)
local waves, asked = plan_calls(plan)
redis.call('HSET', turn, 'step', step, 'n_calls', #plan, 'wave', 1, 'waves', waves, 'thinking', '0',
  'awaits', 'calls', 'owner', '')
goes_on(turn)
if problem ~= '' then redis.call('HINCRBY', turn, 'problem:' .. problem, 1) end
emit(turn, events, 'step.ended', {step = step, calls = #plan, plan = asked, input_tokens = input, output_tokens = output,
  problem = problem ~= '' and problem or nil})
for _, call in ipairs(plan) do
  if call.denied ~= '' then end_call(call.id, 'denied', call.message, call.denied, 0) end
end
for name in block:gmatch('%S+') do redis.call('SADD', blocked, name) end
open_waves()
return {'COMMITTED'}
