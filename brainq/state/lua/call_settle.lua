--[[
Record how a call ended: the move of its status and the recording of its result are one step, so no result
enters a turn whose call has timed out or whose gate is closed. What comes too late changes nothing but
timed_out -> timed_out_late; a late write leaves a notice that the model reads next.

KEYS   turn budget trace history events guard sources blocked notices changes
ARGV   sid tid owner call attempt:n status:TraceStatus message detail latency_ms:n retryable:b found block:b
       notice changed
REPLY  SETTLED wants:words | LATE status:TraceStatus | LOST status:TraceStatus/gone
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
  local wants = settle(call, status, message, detail, latency_ms, found, block)
  -- What came from outside for a call that was cut off before it could take it is told like what comes late. The
  -- status does not move by it: the function has not ended.
  if held[6] and (status == 'timed_out' or status == 'cancelled' or status == 'unknown') then
    came_late(call, 'unknown', held[4], held[5], cjson.decode(held[6]).notice)
  end
  return {'SETTLED', table.concat(wants, ' ')}
end
-- A function that was cut off has not ended yet: only how it ends in the end is news.
if held[1] == 'running' or status == 'timed_out' or status == 'cancelled' or status == 'unknown' then
  return {'LATE', held[1]}
end
if not came_late(call, held[1], held[4], held[5], notice) then return {'LOST', held[1]} end
return {'LATE', held[1]}
