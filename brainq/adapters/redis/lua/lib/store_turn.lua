-- Write the keys of a submitted turn. `s` is the session's hash as it was read. `begins` means that the turn begins at
-- once. Uses the names of turn_submit.
-- @include lib/now
-- @include lib/session_pin
-- @include lib/table_hash
local function store_turn(s, begins)
  redis.call('SET', spec, spec_json)
  redis.call('HSET', budget, 'timeout_ms', timeout_ms, 'steps_max', max_steps, 'tool_calls_max', max_tool_calls, 'reflections_max',
    max_reflections, 'max_context_tokens', max_context_tokens, 'tokens_max', max_total_tokens, 'cost_max_usd', max_cost_usd,
    'children_max', max_children, unpack(begins and {'deadline', now + timeout_ms} or {}))
  local more = begins and {'active_at', now, 'rung_at', now} or {} -- most turns have none of these
  for name, value in pairs({lost_reason = lost_reason, isolated = isolated ~= '0' and isolated or '', brain = brain,
    said = readiness_word, max_wait_ms = max_wait_ms, priority = priority ~= 'normal' and priority or '', trace = trace}) do
    if value ~= '' then more[#more + 1], more[#more + 2] = name, value end
  end
  set_as_table(turn, 'state', begins and 'active' or 'queued', 'awaits', begins and 'coordinator' or 'session',
    'sid', sid, 'tid', tid, 'created_at', now, 'fence', 0, 'step', 0, 'attempt', 0, 'owner', '', 'write_epoch', 0,
    'kind', turn_kind, 'parent', parent, unpack(more))
  if s.pins or s.format or STATE_FORMAT > 1 then take_over(turn, s, brain) end
end
