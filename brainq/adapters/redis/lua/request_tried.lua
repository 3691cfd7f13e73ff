--[[
How a try ended: it was refused, cut before its client had all, or sent whole; `over`: its client is not to come
again. One that was tried again since is that try's.

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
