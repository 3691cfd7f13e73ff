--[[
Let a window's counter have what SQL has granted it in all. A counter that is not there is new, or Redis lost it: it begins
with `spent`, which is no less than what was spent. Granting the same twice changes nothing.

KEYS   counter
ARGV   granted:f? spent:f? keep_ms:n
REPLY  GRANTED
]]
if redis.call('EXISTS', counter) == 0 then redis.call('HSET', counter, 'spent', spent) end
local before = tonumber(redis.call('HGET', counter, 'granted') or 0)
redis.call('HSET', counter, 'granted', string.format('%.12g', math.max(before, tonumber(granted))))
redis.call('PEXPIRE', counter, keep_ms)
return {'GRANTED'}
