--[[
Queue an accepted turn. It begins at once if its session is idle and the fleet has capacity; else it waits in the session's
queue, and the session waits in its tenant's queue if only capacity is missing. A child turn needs only the capacity of its
brain, because its parent's call waits for it; a turn that is to be ended (`lost_reason`) needs none. `mode` is what the turn
does to a live one: `enqueue` waits behind the others, `interrupt` stops the live turn and waits before the others, `replace`
also drops the others, `reject` does not queue. `readiness_word` is `ready`, or a hold as JSON with its id. `kept` is what SQL
keeps of a turn that Redis may have lost, `trace` the span of its producer, `cell_tenant` its tenant if there are several
cells: no turn of a tenant that has moved, or is about to, is queued. `stop_fields` may forbid it. Each of these may be empty.

KEYS   session waiting turn spec budget events flags readiness mailbox receipts moved
ARGV   base sid tid spec_json turn_kind:TurnKind isolated:b brain parent mode:OnBusy priority:Priority readiness_word first_step channel
       timeout_ms:n max_wait_ms:n? max_steps:n max_tool_calls:n max_reflections:n max_context_tokens:n max_total_tokens:n?
       max_cost_usd:f? max_children:n lost_reason kept trace cell_tenant keep_session_ms:n
       stop_fields...
REPLY  ACTIVE | QUEUED ahead:n stopped:words | EXISTS state:TurnState | BUSY live | MOVED cell epoch:n | MOVING | FORBIDDEN stop |
       UNSERVED build
]]
-- @include lib/admit_turns
-- @include lib/cancel
-- @include lib/kept
-- @include lib/let_go
-- @include lib/stops
-- @include lib/store_turn
-- Decide: first whether the turn is refused, then whether it begins. Nothing is written before that.
local word = cell_tenant ~= '' and redis.call('HGET', moved, cell_tenant)
if word then return word:sub(1, 1) == ' ' and {'MOVING'} or {'MOVED', word:match('^(%S+) (%d+)$')} end
local state = redis.call('HGET', turn, 'state')
if state then return {'EXISTS', state} end
local s = read(session, {'live', 'paused', 'pins', 'format'})
local is_ended = lost_reason ~= '' -- it is queued only to be ended
local gone = s.pins and not is_ended and missing_build(s.pins, brain)
if gone then return {'UNSERVED', gone} end

local live, idle, full, caps = s.live ~= '' and s.live, false, nil, nil
if not live and s.paused ~= '1' then
  idle, full, caps = true, why_full(tenant_of(sid))
  local stop = capacity_now.has_stops and forbidding(stop_fields)
  if stop then return {'FORBIDDEN', stop} end
end
local brain_full = caps and brain_is_full(brain)
local fits = false
if idle then fits = is_ended or not brain_full and (not full or parent ~= '') end
-- A turn may wait in the idle session already: for capacity, or for its brain's. It came first.
local first = false
if idle and (not fits or parent ~= '' or caps and not is_ended) then first = redis.call('LINDEX', waiting, 0) end
if mode == 'reject' and (live or first) then return {'BUSY', live or first} end
local begins = fits and not first

-- Act.
store_turn(s, begins)
local cancelled = kept ~= '' and give_back(cjson.decode(kept)) -- a cancel that SQL kept
if begins then
  make_live(session, turn, events, flags, readiness, sid, tid, {kind = turn_kind, said = readiness_word, fence = 0, brain = brain,
    flag = kept ~= '' and redis.call('HGET', turn, 'flag'), timeout_ms = timeout_ms})
  if cancelled then cancel_live(turn, sid, tid, cancelled, channel) end
  return {'ACTIVE'}
end

local goes_first = mode == 'interrupt' or mode == 'replace'
local stopped = mode == 'replace' and cancel_all_queued(waiting, base, sid, 'replaced by turn ' .. tid, first_step) or {}
local length = goes_first and redis.call('LPUSH', waiting, tid) or redis.call('RPUSH', waiting, tid)
local ahead = goes_first and 1 or length
redis.call('PERSIST', session)
look_within(sid, tid, math.min(SELDOM_MS, (max_wait_ms ~= '' and max_wait_ms or SELDOM_MS) + 1))
local why = live and 'session' or not idle and 'paused' or brain_full and ahead == 1 and 'brain' or 'room'
if idle and not cancelled then ahead = ahead - 1 + (caps and enqueue_session(sid, caps) or enqueue(sid, ahead == 1 and priority)) end
emit(events, 'turn.queued', {ahead = ahead, why = why})
if goes_first and live then
  stopped[#stopped + 1] = live
  cancel_live(base .. live, sid, live, 'interrupted by turn ' .. tid, channel)
end
if cancelled then
  cancel_queued(waiting, turn, sid, tid, cancelled, first_step)
  let_session_go(session, waiting, sid, keep_session_ms)
elseif idle and caps then
  admit_turns(sid)
end
return {'QUEUED', ahead, table.concat(stopped, ' ')}
