--[[
Record the usage that an open stream has reported so far: at least `used` tokens, including what its reply may still
add. `is_all` means that no more can come. Then the count of the place may fall as well, and the ratio of `counted` to
`estimated` tokens is learned. Otherwise the count may only rise.

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
