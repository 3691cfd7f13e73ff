-- A turn that never began ends: its input is bounced, and it waits in its session no more.
-- @include lib/bounce
-- @include lib/finalize
-- @include lib/room
local function end_queued(waiting_key, turn_key, sid, tid, ending, stop_reason, text, failure, first_step)
  redis.call('LREM', waiting_key, 1, tid)
  local mailbox_key = turn_key .. ':mailbox'
  local inputs = redis.call('LRANGE', mailbox_key, 0, -1)
  bounce_all(inputs, turn_key .. ':events', mailbox_key, turn_key .. ':receipts')
  close_turn(turn_key, turn_key .. ':events', sid, tid, ending, stop_reason, text, failure, first_step)
end

-- It may have been the last one that a paused session kept, or that a session stood in line with.
local function let_session_go(session_key, waiting_key, sid, keep_session_ms)
  if redis.call('EXISTS', waiting_key) == 1 or (redis.call('HGET', session_key, 'live') or '') ~= '' then return end
  redis.call('PEXPIRE', session_key, keep_session_ms)
  redis.call('ZREM', line_of(tenant_of(sid)), sid)
end
