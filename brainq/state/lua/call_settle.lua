--[[
Record how a call ended: the move of its status and the recording of its result are one step, so no result
enters a turn whose call has timed out or whose gate is closed. What comes too late changes nothing but
timed_out -> timed_out_late; a late write leaves a notice that the model reads next.

KEYS   turn trace history events guard sources blocked notices
ARGV   sid tid owner call attempt:n status message detail latency_ms:n found block notice
REPLY  SETTLED wants | LATE status | LOST status
]]
-- @include lib/settle
local held = redis.call('HMGET', trace, call .. ':status', call .. ':attempt', call .. ':owner',
  call .. ':effect', call .. ':noted')
if not held[1] or tonumber(held[2]) ~= attempt or held[3] ~= owner then return {'LOST', held[1] or 'gone'} end
local open = redis.call('HMGET', turn, 'state', 'gate')
if held[1] == 'running' and open[1] == 'active' and open[2] ~= 'shut' then
  return {'SETTLED', table.concat(settle(call, status, message, detail, latency_ms, found, block), ' ')}
end
-- A function that was cut off has not ended yet: only how it ends in the end is news.
if held[1] == 'running' or status == 'timed_out' or status == 'cancelled' then return {'LATE', held[1]} end
if held[1] == 'timed_out' then redis.call('HSET', trace, call .. ':status', 'timed_out_late') end
if held[1] ~= 'timed_out' and held[1] ~= 'cancelled' and held[1] ~= 'unknown' then return {'LOST', held[1]} end
if held[4] ~= 'read_only' and notice ~= '' and not held[5] then
  -- A write that took effect after all makes what was read before it stale.
  if open[1] == 'active' then redis.call('HINCRBY', turn, 'write_epoch', 1) end
  redis.call('HSET', trace, call .. ':noted', '1')
  redis.call('RPUSH', notices, notice)
  -- An idle session's notices go with its history; where that is gone already, after a day.
  local keep_ms = redis.call('PTTL', history)
  if keep_ms == -2 then keep_ms = 86400000 end
  if keep_ms > 0 then redis.call('PEXPIRE', notices, keep_ms) end
end
return {'LATE', held[1]}
