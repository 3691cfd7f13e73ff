--[[
Store a stop that an operator has set, and that SQL has recorded, or store it again. `field` is `KIND NAME TENANT`,
`mode` is pause or forbid, and `text` has who and why as JSON. `remaining_ms` is the time until it ends by itself, or
empty.

KEYS   stopped capacity
ARGV   field mode:pause/forbid text remaining_ms:n? keep_ms:n
REPLY  STOPPED
]]
-- @include lib/now
-- @include lib/ring
redis.call('HSET', stopped, field, mode .. ' ' .. (remaining_ms == '' and 0 or now + remaining_ms) .. ' ' .. text)
redis.call('HSET', BELLS_KEY, 'stops', '1')
redis.call('HSET', capacity, 'stops', '1')
for _, key in ipairs({stopped, BELLS_KEY, capacity}) do redis.call('PEXPIRE', key, keep_ms) end
return {'STOPPED'}
