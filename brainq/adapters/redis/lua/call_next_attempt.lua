--[[
Dispatch the next attempt of a call whose worker is gone, in the lanes that the call still holds. ALIVE is also the
reply while their lease is renewed, because the function of the last attempt was cut off and still runs.

KEYS   turn budget trace events history guard
ARGV   sid tid call attempt:n
REPLY  AGAIN attempt:n | ALIVE | GONE status:TraceStatus/gone
]]
-- @include lib/waves
local c = read_call(call, {'status', 'attempt', 'lease', 'effect', 'tool'})
if c.status ~= 'running' or tonumber(c.attempt) ~= attempt or redis.call('HGET', turn, 'state') ~= 'active' then
  return {'GONE', c.status or 'gone'}
end
if tonumber(c.lease) > now or are_renewed(holder_of(call)) then return {'ALIVE'} end
c.attempt = attempt + 1
redis.call('HSET', trace, call .. ':attempt', c.attempt, call .. ':owner', '')
dispatch(call, c)
return {'AGAIN', c.attempt}
