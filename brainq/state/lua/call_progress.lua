--[[
Tell readers how far a running call is. `number` counts what this attempt has told, so that telling it twice is telling
it once. `said` is JSON: done, and total and message where they are known.

KEYS   turn trace events
ARGV   owner call attempt:n number:n said
REPLY  OK | LOST
]]
-- @include lib/event
-- @include lib/read_call
local c = read_call(call, {'status', 'owner', 'attempt', 'progress'})
if c.owner ~= owner or tonumber(c.attempt) ~= attempt or c.status ~= 'running' then return {'LOST'} end
if redis.call('HGET', turn, 'state') ~= 'active' then return {'LOST'} end
local mark = attempt .. ':' .. number
if c.progress == mark then return {'OK'} end
redis.call('HSET', trace, call .. ':progress', mark)
local told = cjson.decode(said)
told.call = call
emit(events, 'call.progress', told)
return {'OK'}
