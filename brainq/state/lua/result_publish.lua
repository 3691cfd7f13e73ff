--[[
The result goes out, once: the turn gets its final state, and readers their last event.

KEYS   turn result events
ARGV   body data
REPLY  PUBLISHED | ALREADY | OPEN
]]
-- @include lib/event
local held = redis.call('HMGET', turn, 'state', 'ending')
if held[1] ~= 'closing' then return {held[1] == held[2] and held[1] and 'ALREADY' or 'OPEN'} end
redis.call('SET', result, body)
redis.call('HSET', turn, 'state', held[2], 'result_at', now)
emit(turn, events, 'result', cjson.decode(data))
return {'PUBLISHED'}
