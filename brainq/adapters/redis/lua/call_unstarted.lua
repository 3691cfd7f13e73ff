--[[
Decide whether an attempt never started although its intent is in SQL and its worker is gone, because the insert reached
SQL after the worker had given it up. If so, the attempt is fenced here and will never start. The reply is UNSTARTED
only if its `call_start` never came, and if this is the Redis that the attempt was claimed from, neither restarted nor
failed over, so that no data was lost. `owner` wrote the intent. If Redis lost that claim, the claim of another owner
does not show whether the first one started.

KEYS   trace
ARGV   sid tid call attempt:n owner
REPLY  UNSTARTED | STARTED | GONE status:TraceStatus/gone
]]
-- @include lib/now
-- @include lib/fields
-- @include lib/read_call
-- @include lib/run
local c = read_call(call, {'status', 'attempt', 'lease', 'run', 'begun', 'owner'})
if c.status ~= 'running' or tonumber(c.attempt) ~= attempt then return {'GONE', c.status or 'gone'} end
local run = redis_run()
if c.owner ~= owner and c.owner ~= '' then return {'STARTED'} end
if tonumber(c.lease) > now or c.begun == tostring(attempt) or run == '' or c.run ~= attempt .. ' ' .. run then
  return {'STARTED'}
end
redis.call('HSET', trace, call .. ':owner', '')
return {'UNSTARTED'}
