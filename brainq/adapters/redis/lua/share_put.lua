--[[
Store the share of a model's limit that the home cell has given this cell, in parts of WHOLE. It holds for `for_ms` from
the look with this `mark`, which was made before the request to the home cell. OLD means that another look came in
between.

KEYS   rule
ARGV   mark:n share:n for_ms:n
REPLY  PUT | OLD
]]
-- @include lib/fields
local KEEP_MS = 90000000
if tonumber(redis.call('HGET', rule, 'look_mark') or 0) ~= mark then return {'OLD'} end
redis.call('HSET', rule, 'share', share, 'share_until', mark + for_ms)
redis.call('PEXPIRE', rule, KEEP_MS)
return {'PUT'}
