--[[
Write what scripts read of a tenant that is not this cell's any more, or take it away again (`after` empty), if it is
still what it was (`before`, empty for nothing).

KEYS   moved
ARGV   tenant before after
REPLY  DONE | CHANGED word
]]
local word = redis.call('HGET', moved, tenant) or ''
if word == after then return {'DONE'} end
if word ~= before then return {'CHANGED', word} end
if after == '' then redis.call('HDEL', moved, tenant) else redis.call('HSET', moved, tenant, after) end
return {'DONE'}
