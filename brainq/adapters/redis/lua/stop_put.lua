--[[
Operators stop something by name, or say so again: SQL knows it. `field` is `KIND NAME TENANT`, `mode` pause or forbid, `text` who and why,
as JSON; `remaining_ms` until it ends by itself, if it does.

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
