-- Handle the end of a queued turn. The session may have waited for this turn, queued or deferred: its next turn may
-- begin at once, or wait for something else. It may also have been the last turn of a paused session.
-- @include lib/fields
-- @include lib/admit_turns
local function let_session_go(session_key, waiting_key, sid, keep_session_ms)
  local s = read(session_key, {'live', 'paused'})
  if s.live and s.live ~= '' then return end
  if redis.call('EXISTS', waiting_key) == 0 then
    redis.call('PEXPIRE', session_key, keep_session_ms)
    redis.call('ZREM', sessions_of(tenant_of(sid)), sid)
    stop_waiting(sid)
  elseif s.paused ~= '1' then
    enqueue_session(sid, caps_now())
    admit_turns(sid)
  end
end
