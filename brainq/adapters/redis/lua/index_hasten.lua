--[[
Schedule the check of these turns in `after_ms` at the latest.

KEYS   index
ARGV   after_ms:n members...
REPLY  OK
]]
-- @include lib/now
for i = 2, #ARGV do redis.call('ZADD', index, 'LT', now + after_ms, ARGV[i]) end
return {'OK'}
