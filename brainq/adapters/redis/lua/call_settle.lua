--[[
Record how a call ended. The move of its status and the recording of its result are one step, so no result enters a turn
whose call has timed out or whose gate is shut. A late result changes nothing except timed_out to timed_out_late, and a
late write leaves a notice that the model reads next. The call leaves its lanes, unless its function `still_runs`: then
it leaves them when the function has ended and this is called again. After LOST, the lanes may belong to the next
attempt, or a sweeper frees them. SETTLED is also the reply if the call has already ended in this way, because that
reply was lost.
`stay`: the queues of what the thread continues with, by `visit` (lib/stay). CALL or TURN: it is settled, and the thread has that.
`declined` is the reason if the thread does not have what was opened.

KEYS   turn budget trace history events guard sources blocked notices changes run
ARGV   sid tid owner call attempt:n status:TraceStatus message detail latency_ms:n retryable:b found block:b
       notice changed still_runs:b stay:words visit
REPLY  SETTLED declined... | TURN fence:n now:n found... | LATE status:TraceStatus | LOST status:TraceStatus/gone
       | CALL call attempt:n spec cap_ms:n remaining_ms:n effect:Effect tool step:n edited:b brain waited_ms:n lane_waited_ms:n
]]
-- @include lib/settle
-- @include lib/stay_call
-- @include lib/late
-- @include lib/changes
local c = read_call(call, {'status', 'attempt', 'owner', 'effect', 'fp', 'tool', 'noted', 'early'})
if not c.status or tonumber(c.attempt) ~= attempt or c.owner ~= owner then return {'LOST', c.status or 'gone'} end
local t = read(turn, {'state', 'gate', 'cancel', 'write_epoch'})
local is_cut = status == 'timed_out' or status == 'cancelled' or status == 'unknown'
if c.status == 'running' and is_open(t) then
  add_changes(changed)
  note_retryable(call, retryable)
  if not is_cut then offer_calls(stay, visit) end
  settle(call, c, t, status, message, detail, latency_ms, found, block, still_runs == '0')
  -- A result from outside that arrived before the call was cut off is reported as late. It does not change the status,
  -- because the function has not ended.
  if c.early and is_cut then came_late(call, c, 'unknown', t.state, cjson.decode(c.early).notice) end
  return stayed_reply() or {'SETTLED', declined}
end
-- A function that was cut off has not ended yet. Only its final end is reported.
local is_news = c.status ~= 'running' and not is_cut
if is_news and not came_late(call, c, c.status, t.state, notice) then
  if c.status == status then return stayed_before(stay, visit) or {'SETTLED'} end
  return {'LOST', c.status}
end
if still_runs == '0' and c.effect ~= 'read_only' then leave_lanes(call) end
if c.status == status then return {'SETTLED'} end
return {'LATE', c.status}
