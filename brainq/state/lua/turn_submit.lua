--[[
Make an accepted turn known to Redis: live if its session is idle and the fleet has capacity, else last in the session's
queue; a session whose first turn finds no capacity waits in its tenant's queue. A child turn needs only its brain's, for its
parent's call waits for it; one that is to be ended needs none. `mode` says what it does to a live turn: `enqueue` waits
behind the others, `interrupt` stops it and waits before the others, `replace` drops those as well, `reject` does not queue.
`readiness_word` is its word on readiness: `ready`, or a hold as JSON with its id. `kept` is what SQL knows of a turn that
Redis may have lost, `trace` its position in its producer's trace, `cell_tenant` its tenant where there are several cells: of
one that has moved away, or is about to, no turn is queued; `stop_fields` what may forbid it. Each may be empty.

KEYS   session waiting turn spec budget events flags readiness mailbox receipts moved
ARGV   base sid tid spec_json turn_kind:TurnKind isolated:b brain parent mode:OnBusy priority:Priority readiness_word first_step channel
       timeout_ms:n max_wait_ms:n? max_steps:n max_tool_calls:n max_reflections:n max_context_tokens:n max_total_tokens:n?
       max_cost_usd:f? max_children:n lost_reason kept trace cell_tenant stop_fields...
REPLY  ACTIVE | QUEUED ahead:n stopped:words | EXISTS state:TurnState | BUSY live | MOVED cell epoch:n | MOVING | FORBIDDEN stop |
       UNSERVED build
]]
-- @include lib/admit_turns
-- @include lib/cancel
-- @include lib/kept
-- @include lib/stops
-- @include lib/table_hash
-- @include lib/session_pin
local state, word = redis.call('HGET', turn, 'state'), cell_tenant ~= '' and redis.call('HGET', moved, cell_tenant)
if word then return word:sub(1, 1) == ' ' and {'MOVING'} or {'MOVED', word:match('^(%S+) (%d+)$')} end
if state then return {'EXISTS', state} end
local s = read(session, {'live', 'paused', 'pins', 'format'})
local live, gone = s.live ~= '' and s.live, s.pins and lost_reason == '' and missing_build(s.pins, brain)
if gone then return {'UNSERVED', gone} end
local idle, full, caps = not live and s.paused ~= '1', nil, nil
if idle then full, caps = why_full(tenant_of(sid)) end
local forbidden, brain_full = idle and capacity_now.has_stops and forbidding(stop_fields), caps and brain_is_full(brain)
if forbidden then return {'FORBIDDEN', forbidden} end
-- The turn that waits in the idle session already: it waits for capacity, or for its brain's, and was there first.
local function first_waiting(fits)
  return (not fits or parent ~= '' or caps and lost_reason == '') and redis.call('LINDEX', waiting, 0)
end
local function store_turn(begins)
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
local fits = idle and (lost_reason ~= '' or not brain_full and (not full or parent ~= ''))
local first = idle and first_waiting(fits)
if mode == 'reject' and (live or first) then return {'BUSY', live or first} end

store_turn(fits and not first)
local cancelled = kept ~= '' and give_back(cjson.decode(kept))
if fits and not first then
  make_live(session, turn, events, flags, readiness, sid, tid, {kind = turn_kind, said = readiness_word, fence = 0, brain = brain,
    flag = kept ~= '' and redis.call('HGET', turn, 'flag'), timeout_ms = timeout_ms})
  if cancelled then cancel_live(turn, sid, tid, cancelled, channel) end
  return {'ACTIVE'}
end
local goes_first = mode == 'interrupt' or mode == 'replace'
local stopped = mode == 'replace' and cancel_all_queued(waiting, base, sid, 'replaced by turn ' .. tid, first_step) or {}
local length = goes_first and redis.call('LPUSH', waiting, tid) or redis.call('RPUSH', waiting, tid)
-- One that was cancelled ends below: it keeps no session, and waits for no capacity.
if not cancelled then redis.call('PERSIST', session) end
local ahead = goes_first and 1 or length
look_within(sid, tid, math.min(SELDOM_MS, (max_wait_ms ~= '' and max_wait_ms or SELDOM_MS) + 1))
local why = live and 'session' or not idle and 'paused' or brain_full and ahead == 1 and 'brain' or 'room'
if idle and not cancelled then ahead = ahead - 1 + (caps and enqueue_session(sid, caps) or enqueue(sid, ahead == 1 and priority)) end
emit(events, 'turn.queued', {ahead = ahead, why = why})
if goes_first and live then
  stopped[#stopped + 1] = live
  cancel_live(base .. live, sid, live, 'interrupted by turn ' .. tid, channel)
end
if cancelled then cancel_queued(waiting, turn, sid, tid, cancelled, first_step) end
if idle and caps then admit_turns(sid) end
return {'QUEUED', ahead, table.concat(stopped, ' ')}
