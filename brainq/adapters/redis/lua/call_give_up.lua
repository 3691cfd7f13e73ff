--[[
Settle a call whose worker is gone and which must not run again: as unknown, as failed, or as SQL recorded its end. If
its result came from outside before the worker could park it, that result is its end. The call leaves its lanes, unless
their lease is still being renewed: then its function was cut off without a report and still runs, and the lanes are
left when it ends. `outcome` is JSON for the brain's hook.

KEYS   turn budget trace history events guard sources blocked
ARGV   sid tid call attempt:n status:TraceStatus message detail retryable:b outcome
REPLY  SETTLED | ALIVE | GONE status:TraceStatus/gone
]]
-- @include lib/settle
-- @include lib/hook_due
local c, t = read_call(call, OF_CALL), read(turn, OF_TURN)
if c.status ~= 'running' or tonumber(c.attempt) ~= attempt or t.state ~= 'active' then
  return {'GONE', c.status or 'gone'}
end
if tonumber(c.lease) > now then return {'ALIVE'} end
local leaves = not are_renewed(holder_of(call))
if c.early then
  local early = cjson.decode(c.early)
  redis.call('HSET', trace, call .. ':token', early.token, call .. ':completed_by', early.token)
  note_retryable(call, early.retryable)
  note_hook_due(call, early.outcome)
  settle(call, c, t, early.status, early.message, early.detail, 0, early.found, '0', leaves)
  return {'SETTLED'}
end
note_retryable(call, retryable)
note_hook_due(call, outcome)
settle(call, c, t, status, message, detail, 0, '', '0', leaves)
return {'SETTLED'}
