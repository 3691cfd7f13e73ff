--[[
Commit a reply that asks for calls: the reply enters the history, the calls their trace, the first wave opens.
`calls` is a JSON array in the model's order; a call that a gate denied carries its message.

KEYS   turn budget trace history events guard blocked
ARGV   sid tid owner fence:n step:n item calls block tail input:n output:n cache_read:n cache_creation:n cost
REPLY  COMMITTED wants | LOST
]]
-- @include lib/holds
-- @include lib/budget
-- @include lib/waves
if not holds(turn, owner, fence) or tonumber(redis.call('HGET', turn, 'step')) ~= step - 1 then return {'LOST'} end

redis.call('RPUSH', history, item)
if tail ~= '' then
  emit(turn, events, 'text.delta', {step = step, attempt = tonumber(redis.call('HGET', turn, 'attempt')), text = tail})
end
add_usage(budget, input, output, cache_read, cache_creation, cost)
local plan, waves, asked = cjson.decode(calls), 0, {}
for _, call in ipairs(plan) do
  local id = call.id
  redis.call('HSET', trace, id .. ':tool', call.tool, id .. ':effect', call.effect, id .. ':wave', call.wave,
    id .. ':attempt', 1, id .. ':fp', call.fp, id .. ':hash', call.hash, id .. ':spec', call.spec,
    id .. ':cap_ms', call.cap_ms, id .. ':lanes', call.lanes, id .. ':repairs', call.repairs, id .. ':again', call.again, id .. ':status', 'planned')
  asked[#asked + 1] = {call = id, tool = call.tool, effect = call.effect}
  if call.wave > waves then waves = call.wave end
end
redis.call('HSET', turn, 'step', step, 'n_calls', #plan, 'wave', 1, 'waves', waves, 'thinking', '0', 'lost_attempts', 0,
  'awaits', 'calls', 'owner', '')
emit(turn, events, 'step.ended', {step = step, calls = #plan, plan = asked, input_tokens = input, output_tokens = output})
for _, call in ipairs(plan) do
  if call.denied ~= '' then end_call(call.id, 'denied', call.message, call.denied, 0) end
end
for name in block:gmatch('%S+') do redis.call('SADD', blocked, name) end
return {'COMMITTED', table.concat(open_waves(), ' ')}
