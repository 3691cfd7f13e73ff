-- End a turn that never began. Its input bounces, and it leaves its session's queue.
-- @include lib/inputs_left
-- @include lib/finalize
local function end_queued(waiting_key, turn_key, sid, tid, ending, stop_reason, text, failure, first_step)
  redis.call('LREM', waiting_key, 1, tid)
  local mailbox_key = turn_key .. ':mailbox'
  local inputs = redis.call('LRANGE', mailbox_key, 0, -1)
  bounce_inputs(inputs, turn_key .. ':events', mailbox_key, turn_key .. ':receipts')
  close_turn(turn_key, turn_key .. ':events', sid, tid, ending, stop_reason, text, failure, first_step)
end
