-- Resume a turn that was parked because a budget was spent. It requests its step again.
-- @include lib/money
-- @include lib/resume
-- @include lib/ring
-- @lazy
local function unpark(turn_key, line, sid, tid, fence)
  leave_line(turn_key, line, sid, tid)
  resume_turn(turn_key, turn_key .. ':budget', turn_key .. ':events', 'coordinator')
  redis.call('HSET', turn_key, 'rung_at', now)
  ring_anew('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
end
