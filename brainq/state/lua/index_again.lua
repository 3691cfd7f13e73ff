--[[
A turn was looked at: the next look is in `after_ms`. Only while it has the `mark` that index_take gave it: who had it looked at
sooner meanwhile, or took it after that, is not overruled.

KEYS   index
ARGV   member mark after_ms:n
REPLY  OK | OTHERS
]]
-- @include lib/now
if redis.call('ZSCORE', index, member) ~= mark then return {'OTHERS'} end
redis.call('ZADD', index, now + after_ms, member)
return {'OK'}
