-- Write the trace of a step's calls, in the model's order. Returns the number of waves, the plan that is published, and
-- the calls in the form that `open_waves` takes. Uses the script's names: turn trace events, and lib/now.
-- @include lib/event
-- @include lib/table_hash
local PLANNED = {'tool', 'effect', 'wave', 'fp', 'hash', 'spec', 'cap_ms', 'lanes', 'repairs', 'again', 'client_ms', 'client_args',
  'client_said'}

-- @lazy
local function ask_people(id, call, note)
  note(id .. ':ask', 'pending')
  note(id .. ':ask_ends', now + call.ask_ms)
  note(id .. ':ask_reason', call.ask_reason)
  note(id .. ':ask_at', now)
  emit(events, 'approval.requested',
    {call = id, tool = call.tool, effect = call.effect, reason = call.ask_reason, expires_in_ms = call.ask_ms})
end

local function plan_calls(plan)
  local waves, published, known, fields = 0, {}, {}, {}
  local function note(field, value)
    if value == nil then return end
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  for i, call in ipairs(plan) do
    local id = call.id
    for _, name in ipairs(PLANNED) do note(id .. ':' .. name, call[name]) end
    note(id .. ':attempt', 1)
    note(id .. ':status', 'planned')
    if call.ask_ms then ask_people(id, call, note) end
    published[i] = {call = id, tool = call.tool, effect = call.effect}
    known[i] = {status = 'planned', wave = call.wave, effect = call.effect, fp = call.fp, tool = call.tool, attempt = 1,
      ask = call.ask_ms and 'pending'}
    if call.wave > waves then waves = call.wave end
  end
  for i = 1, #fields, 1000 do set_as_table(trace, unpack(fields, i, math.min(i + 999, #fields))) end
  return waves, published, known
end
