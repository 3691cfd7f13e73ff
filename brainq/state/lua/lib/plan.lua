-- Write the trace of a step's calls, in the model's order. Returns how many waves they make, and what readers are told.
-- Uses the script's names: turn trace events, and lib/now.
-- @include lib/event
local function plan_calls(plan)
  local waves, asked = 0, {}
  for _, call in ipairs(plan) do
    local id = call.id
    redis.call('HSET', trace, id .. ':tool', call.tool, id .. ':effect', call.effect, id .. ':wave', call.wave,
      id .. ':attempt', 1, id .. ':fp', call.fp, id .. ':hash', call.hash, id .. ':spec', call.spec,
      id .. ':cap_ms', call.cap_ms, id .. ':lanes', call.lanes, id .. ':repairs', call.repairs, id .. ':again', call.again, id .. ':status', 'planned')
    if call.ask_ms then
      redis.call('HSET', trace, id .. ':ask', 'pending', id .. ':ask_ends', now + call.ask_ms, id .. ':ask_reason', call.ask_reason,
        id .. ':ask_at', now)
      emit(turn, events, 'approval.requested',
        {call = id, tool = call.tool, effect = call.effect, reason = call.ask_reason, expires_in_ms = call.ask_ms})
    end
    asked[#asked + 1] = {call = id, tool = call.tool, effect = call.effect}
    if call.wave > waves then waves = call.wave end
  end
  return waves, asked
end
