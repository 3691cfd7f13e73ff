--[[
Park a call whose function has returned and whose result will come from outside. The call leaves its lanes, and no
worker waits for it. A result that came before this settles the call at once.

KEYS   turn budget trace history events guard sources blocked changes
ARGV   sid tid owner call attempt:n why:outside/child token timeout_ms:n found block:b changed
REPLY  PARKED | SETTLED | LATE status:TraceStatus | LOST status:TraceStatus/gone
]]
-- @include lib/settle
-- @include lib/changes
-- @include lib/hook_due
local c = read_call(call, OF_CALL)
if not c.status or tonumber(c.attempt) ~= attempt or c.owner ~= owner then return {'LOST', c.status or 'gone'} end
if c.status == 'parked' and c.token == token then return {'PARKED'} end
if c.completed_by == token and SETTLED[c.status] then return {'SETTLED'} end
local t = read(turn, OF_TURN)
if c.effect ~= 'read_only' then leave_lanes(call) end
if c.status ~= 'running' or not is_open(t) then return {'LATE', c.status} end
add_changes(changed)
redis.call('HSET', trace, call .. ':token', token)
local early = c.early and cjson.decode(c.early)
if early and early.token == token then
  note_side(c.tool, found, '0')
  note_retryable(call, early.retryable)
  redis.call('HSET', trace, call .. ':completed_by', token)
  note_hook_due(call, early.outcome)
  settle(call, c, t, early.status, early.message, early.detail, now - tonumber(c.started_at), early.found, block)
  return {'SETTLED'}
end
note_side(c.tool, found, block)
park(call, c, why, now + timeout_ms)
open_waves()
return {'PARKED'}
