--[[
Ask again for a call whose worker is gone: the next attempt, in the lanes it still holds. `ALIVE`, too, while their lease
is renewed: the function of the last attempt was cut off and still runs.

KEYS   turn budget trace events history guard
ARGV   sid tid call attempt:n
REPLY  AGAIN attempt:n | ALIVE | GONE status:TraceStatus/gone
]]
-- @include lib/waves
local held = redis.call('HMGET', trace, call .. ':status', call .. ':attempt', call .. ':lease', call .. ':effect')
if held[1] ~= 'running' or tonumber(held[2]) ~= attempt or redis.call('HGET', turn, 'state') ~= 'active' then
  return {'GONE', held[1] or 'gone'}
end
if tonumber(held[3]) > now or are_renewed(holder_of(call)) then return {'ALIVE'} end
redis.call('HSET', trace, call .. ':attempt', attempt + 1, call .. ':owner', '')
dispatch(call, held[4], attempt + 1)
return {'AGAIN', attempt + 1}
