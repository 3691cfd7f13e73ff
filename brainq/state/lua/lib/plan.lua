-- Write the trace of a step's calls, in the model's order. Returns how many waves they make, and what is published.
-- Uses the script's names: turn trace events, and lib/now.
-- @include lib/event
local function plan_calls(plan)
  local waves, asked, fields = 0, {}, {}
  local function note(id, values)
    for name, value in pairs(values) do
      fields[#fields + 1] = id .. ':' .. name
      fields[#fields + 1] = value
    end
  end
  for _, call in ipairs(plan) do
    local id = call.id
    note(id, {tool = call.tool, effect = call.effect, wave = call.wave, attempt = 1, fp = call.fp, hash = call.hash,
      spec = call.spec, cap_ms = call.cap_ms, lanes = call.lanes, repairs = call.repairs, again = call.again,
      status = 'planned'})
    if call.ask_ms then
      note(id, {ask = 'pending', ask_ends = now + call.ask_ms, ask_reason = call.ask_reason, ask_at = now})
      emit(events, 'approval.requested',
        {call = id, tool = call.tool, effect = call.effect, reason = call.ask_reason, expires_in_ms = call.ask_ms})
    end
    if call.client_ms then
      note(id, {client_ms = call.client_ms, client_args = call.client_args, client_said = call.client_said})
    end
    asked[#asked + 1] = {call = id, tool = call.tool, effect = call.effect}
    if call.wave > waves then waves = call.wave end
  end
  for i = 1, #fields, 1000 do redis.call('HSET', trace, unpack(fields, i, math.min(i + 999, #fields))) end
  return waves, asked
end
