--[[
Record how a call ended: the move of its status and the recording of its result are one step, so no result
enters a turn whose call has timed out or whose gate is closed. What comes too late changes nothing but
timed_out -> timed_out_late; a late write leaves a notice that the model reads next. With it the call leaves its lanes,
unless its function `still_runs`: then they are left when it has ended, and says so here. After LOST they may be the next
attempt's, or a sweeper frees them.

KEYS   turn budget trace history events guard sources blocked notices changes
ARGV   sid tid owner call attempt:n status:TraceStatus message detail latency_ms:n retryable:b found block:b
       notice changed still_runs:b
REPLY  SETTLED | LATE status:TraceStatus | LOST status:TraceStatus/gone
]]
-- @include lib/settle
-- @include lib/late
-- @include lib/changes
local held = redis.call('HMGET', trace, call .. ':status', call .. ':attempt', call .. ':owner',
  call .. ':effect', call .. ':noted', call .. ':early')
if not held[1] or tonumber(held[2]) ~= attempt or held[3] ~= owner then return {'LOST', held[1] or 'gone'} end
local open = redis.call('HMGET', turn, 'state', 'gate')
if held[1] == 'running' and open[1] == 'active' and open[2] ~= 'shut' then
  add_changes(changed)
  note_retryable(call, retryable)
  settle(call, status, message, detail, latency_ms, found, block, still_runs == '0')
  -- What came from outside for a call that was cut off before it could take it is told like what comes late. The
  -- status does not move by it: the function has not ended.
  if held[6] and (status == 'timed_out' or status == 'cancelled' or status == 'unknown') then
    came_late(call, 'unknown', held[4], held[5], cjson.decode(held[6]).notice)
  end
  return {'SETTLED'}
end
local function late()
  if still_runs == '0' and held[4] ~= 'read_only' then leave_lanes(call) end
  return {'LATE', held[1]}
end
-- A function that was cut off has not ended yet: only how it ends in the end is news.
if held[1] == 'running' or status == 'timed_out' or status == 'cancelled' or status == 'unknown' then
  return late()
end
if not came_late(call, held[1], held[4], held[5], notice) then return {'LOST', held[1]} end
return late()
