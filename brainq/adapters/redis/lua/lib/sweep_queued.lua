-- Check a queued turn. It waits no longer than it may. If its session is idle, it waits for capacity: a session that is
-- in no queue is put into one. Uses the names of turn_sweep.
-- @include lib/admit_turns
local function sweep_queued()
  after = seldom_ms()
  local w = read(turn, {'created_at', 'max_wait_ms'})
  local most_ms = tonumber(w.max_wait_ms or '')
  if most_ms then soon(w.created_at + most_ms) end
  if most_ms and now >= w.created_at + most_ms then
    actions[1] = 'waited'
    return
  end
  local s = read(OUTBOX_PREFIX .. '{' .. sid .. '}:session', {'live', 'paused'})
  if s.paused ~= '1' and (not s.live or s.live == '') then
    enqueue_session(sid, caps_now())
    admit_turns(sid)
  end
end
