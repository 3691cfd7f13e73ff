--[[
Write or remove the record that tells scripts that a tenant has left this cell or is about to. `before` is the record as
it was read, and `after` the new one; empty means that there is none. CHANGED means that the record was no longer
`before`.

KEYS   moved
ARGV   tenant before after
REPLY  DONE | CHANGED word
]]
local word = redis.call('HGET', moved, tenant) or ''
if word == after then return {'DONE'} end
if word ~= before then return {'CHANGED', word} end
if after == '' then redis.call('HDEL', moved, tenant) else redis.call('HSET', moved, tenant, after) end
return {'DONE'}
