--[[
Whether an attempt never started, though its intent is in SQL and its worker is gone: a statement of its worker's reached
SQL after that had given it up. Then it is fenced here, and never will. UNSTARTED only where `call_start` of it never came,
and this Redis is the one that it was claimed from, with nothing lost since: neither restarted nor failed over. `owner` wrote
the intent: where Redis lost that claim, another's of the same attempt says nothing of whether that one has started.

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
