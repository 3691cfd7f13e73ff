--[[
Record how a try ended: it was refused, cut before its client had all of it, or sent whole. `over` means that its client
must not come again. If the request was tried again since then, the record belongs to the later try.

KEYS   tries
ARGV   key number:n state:refused/cut/sent/over
REPLY  NOTED | NONE
]]
-- @include lib/now
local found = redis.call('HGET', tries, key)
local at_number, is, by = (found or ''):match('^(%d+) (%a+) %d+ (.*)$')
if tonumber(at_number) ~= number or is ~= 'open' then return {'NONE'} end
if state == 'over' then
  redis.call('HDEL', tries, key)
else
  redis.call('HSET', tries, key, string.format('%d %s %d %s', number, state, now, by))
end
return {'NOTED'}
