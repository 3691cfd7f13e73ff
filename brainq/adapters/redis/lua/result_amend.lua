--[[
Change a published result, because a step was given up after the result went out, or was completed after all. Nothing
changes if the result is no longer `known`, the text that was read.

KEYS   result
ARGV   known body
REPLY  AMENDED | OTHER
]]
if redis.call('GET', result) ~= known then return {'OTHER'} end
redis.call('SET', result, body, 'KEEPTTL')
return {'AMENDED'}
