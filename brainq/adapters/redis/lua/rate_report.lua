--[[
What a stream that goes on has reported of its usage: `used` tokens at least, with what its reply may yet have. `is_all`: no more than
that can come, so that a place counts less, too, and the ratio of `counted` to `estimated` tokens is known; else both only rise.

KEYS   places rule
ARGV   place used:n estimated:n counted:n is_all:b
REPLY  OK | GONE
]]
-- @include lib/rates
-- @include lib/rate_learn
if not redis.call('ZSCORE', places, place) then return {'GONE'} end
if is_all ~= '1' and used <= tonumber(redis.call('HGET', rule, 't:' .. place) or 0) then return {'OK'} end
if count_place(used) then learn_ratio(estimated, counted) end
return {'OK'}
