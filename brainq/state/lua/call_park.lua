--[[
A call's function has returned, and its result will come from outside: the call leaves its lanes and waits for it, and
no worker does. One that came before this settles the call at once.

KEYS   turn budget trace history events guard sources blocked changes
ARGV   sid tid owner call attempt:n why:outside/child token timeout_ms:n found block:b changed
REPLY  PARKED | SETTLED | LATE status:TraceStatus | LOST status:TraceStatus/gone
]]
-- @include lib/settle
-- @include lib/changes
local held = redis.call('HMGET', trace, call .. ':status', call .. ':attempt', call .. ':owner', call .. ':early',
  call .. ':token', call .. ':effect')
if not held[1] or tonumber(held[2]) ~= attempt or held[3] ~= owner then return {'LOST', held[1] or 'gone'} end
if held[1] == 'parked' and held[5] == token then return {'PARKED'} end
local open = redis.call('HMGET', turn, 'state', 'gate')
if held[6] ~= 'read_only' then leave_lanes(call) end
if held[1] ~= 'running' or open[1] ~= 'active' or open[2] == 'shut' then return {'LATE', held[1]} end
add_changes(changed)
local early = held[4] and cjson.decode(held[4])
if early and early.token == token then
  note_side(call, found, '0')
  note_retryable(call, early.retryable)
  redis.call('HSET', trace, call .. ':token', token, call .. ':completed_by', token)
  settle(call, early.status, early.message, early.detail,
    now - tonumber(redis.call('HGET', trace, call .. ':started_at')), early.found, block)
  return {'SETTLED'}
end
note_side(call, found, block)
redis.call('HSET', trace, call .. ':token', token)
park(call, why, now + timeout_ms)
open_waves()
return {'PARKED'}
