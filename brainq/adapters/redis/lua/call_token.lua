--[[
Record the token that a running call gives away, so that no other token is accepted for it. All attempts of a call give
away the same token, so a holder of the first one may answer any of them.

KEYS   trace
ARGV   owner call attempt:n token
REPLY  GIVEN token | LOST
]]
-- @include lib/read_call
local c = read_call(call, {'status', 'attempt', 'owner', 'given'})
if c.status ~= 'running' or tonumber(c.attempt) ~= attempt or c.owner ~= owner then return {'LOST'} end
if not c.given then redis.call('HSET', trace, call .. ':given', token) end
return {'GIVEN', c.given or token}
