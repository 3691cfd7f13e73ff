--[[
Have a turn looked at in `after_ms`. Done before the turn exists in Redis, so that no crash hides one.

KEYS   index
ARGV   member after_ms:n
REPLY  OK
]]
-- @include lib/now
redis.call('ZADD', index, now + after_ms, member)
return {'OK'}
