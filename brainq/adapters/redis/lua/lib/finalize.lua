-- Shut the write gate, store the ending, and ring for the finalizer's first step.
-- @include lib/event
-- @include lib/final_queue
-- @include lib/index
-- @include lib/opened
local function close_turn(turn_key, events_key, sid, tid, ending, stop_reason, text, failure, first_step)
  local place = place_for_final()
  redis.call('HSET', turn_key, 'state', 'closing', 'awaits', 'finalizer', 'owner', '', 'thinking', '0',
    'ending', ending, 'stop_reason', stop_reason, 'text', text, 'error', failure, 'closing_at', now,
    'fin_step', first_step, 'fin_fence', 0, 'fin_tries', 0, 'fin_owner', '', note_bell(place))
  emit(events_key, 'turn.closing', {ending = ending, stop_reason = stop_reason})
  look_within(sid, tid, RERING_MS)
  if not (claim_first_final and claim_first_final(tid)) then ring_final(place, sid, tid, first_step, 0) end
end
