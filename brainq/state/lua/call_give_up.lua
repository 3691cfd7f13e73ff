--[[
Settle a call whose worker is gone and which must not run again: unknown, failed, or as SQL recorded its end. Where its
result came from outside before the worker could park it, that is its end. It leaves its lanes, unless their lease is
renewed: its function was cut off and still runs, though nobody could say so. Then they are left when that ends.

KEYS   turn budget trace history events guard sources blocked
ARGV   sid tid call attempt:n status:TraceStatus message detail retryable:b
REPLY  SETTLED | ALIVE | GONE status:TraceStatus/gone
]]
-- @include lib/settle
local held = redis.call('HMGET', trace, call .. ':status', call .. ':attempt', call .. ':lease')
if held[1] ~= 'running' or tonumber(held[2]) ~= attempt or redis.call('HGET', turn, 'state') ~= 'active' then
  return {'GONE', held[1] or 'gone'}
end
if tonumber(held[3]) > now then return {'ALIVE'} end
local leaves = not are_renewed(holder_of(call))
local kept = redis.call('HGET', trace, call .. ':early')
if kept then
  local early = cjson.decode(kept)
  redis.call('HSET', trace, call .. ':token', early.token, call .. ':completed_by', early.token)
  note_retryable(call, early.retryable)
  settle(call, early.status, early.message, early.detail, 0, early.found, '0', leaves)
  return {'SETTLED'}
end
note_retryable(call, retryable)
settle(call, status, message, detail, 0, '', '0', leaves)
return {'SETTLED'}
