-- A queued turn of a session has ended. It may have been what the session waited for, in line or aside: its next one may begin at
-- once, or waits for something else. It may have been the last one that a paused session kept, or that one stood in line with.
-- @include lib/fields
-- @include lib/fill
local function let_session_go(session_key, waiting_key, sid, keep_session_ms)
  local s = read(session_key, {'live', 'paused'})
  if s.live and s.live ~= '' then return end
  if redis.call('EXISTS', waiting_key) == 0 then
    redis.call('PEXPIRE', session_key, keep_session_ms)
    redis.call('ZREM', line_of(tenant_of(sid)), sid)
    forget_brain(sid)
  elseif s.paused ~= '1' then
    line_up(sid, caps_now())
    fill_room(sid)
  end
end
