--[[
Renew the lease of a running call, or learn that it is no longer wanted.

KEYS   turn trace
ARGV   owner call attempt:n lease_ms:n
REPLY  OK | CLOSED | LOST
]]
-- @include lib/now
local held = redis.call('HMGET', trace, call .. ':status', call .. ':owner', call .. ':attempt')
if held[2] ~= owner or tonumber(held[3]) ~= attempt then return {'LOST'} end
local open = redis.call('HMGET', turn, 'state', 'cancel')
if open[1] ~= 'active' or open[2] == '1' then return {'CLOSED'} end
if held[1] ~= 'running' then return {'LOST'} end
redis.call('HSET', trace, call .. ':lease', now + lease_ms)
return {'OK'}
