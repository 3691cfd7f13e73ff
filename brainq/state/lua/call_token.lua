--[[
Note the token that a running call gives away, so that no other one is taken for it. All attempts of a call give the
same one: who was told of the first may answer any of them.

KEYS   trace
ARGV   owner call attempt:n token
REPLY  GIVEN token | LOST
]]
local held = redis.call('HMGET', trace, call .. ':status', call .. ':attempt', call .. ':owner')
if held[1] ~= 'running' or tonumber(held[2]) ~= attempt or held[3] ~= owner then return {'LOST'} end
redis.call('HSETNX', trace, call .. ':given', token)
return {'GIVEN', redis.call('HGET', trace, call .. ':given')}
