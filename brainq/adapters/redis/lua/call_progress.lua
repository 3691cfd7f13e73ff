--[[
Publish the progress of a call that runs or waits for a server's task. `number` counts the reports of this attempt, so
that each report is published once. `progress` is JSON with `done`, and with `total` and `message` if they are known.

KEYS   turn trace events
ARGV   owner call attempt:n number:n progress
REPLY  OK | LOST
]]
-- @include lib/event
-- @include lib/read_call
local c = read_call(call, {'status', 'owner', 'attempt', 'progress'})
if c.owner ~= owner or tonumber(c.attempt) ~= attempt then return {'LOST'} end
if c.status ~= 'running' and c.status ~= 'parked' then return {'LOST'} end
local state = redis.call('HGET', turn, 'state')
if state ~= 'active' and state ~= 'parked' then return {'LOST'} end
local mark = attempt .. ':' .. number
if c.progress == mark then return {'OK'} end
redis.call('HSET', trace, call .. ':progress', mark)
local event = cjson.decode(progress)
event.call = call
emit(events, 'call.progress', event)
return {'OK'}
