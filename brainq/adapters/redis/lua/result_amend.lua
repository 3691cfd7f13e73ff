--[[
A result that is out says something else: what was given up after it went out, or done after all. Nothing changes where the
result is no longer `known`, as it was read.

KEYS   result
ARGV   known body
REPLY  AMENDED | OTHER
]]
if redis.call('GET', result) ~= known then return {'OTHER'} end
redis.call('SET', result, body, 'KEEPTTL')
return {'AMENDED'}
