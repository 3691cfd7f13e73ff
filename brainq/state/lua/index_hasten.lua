--[[
Have a turn looked at in `after_ms` at the latest.

KEYS   index
ARGV   member after_ms:n
REPLY  OK
]]
-- @include lib/now
redis.call('ZADD', index, 'LT', now + after_ms, member)
return {'OK'}
