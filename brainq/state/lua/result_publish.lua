--[[
The result goes out, once: the turn gets its final state, and readers their last event.

KEYS   turn result events
ARGV   body data
REPLY  PUBLISHED | ALREADY | OPEN
]]
-- @include lib/event
-- @include lib/fields
local t = read(turn, {'state', 'ending'})
if t.state ~= 'closing' then return {t.state == t.ending and t.state and 'ALREADY' or 'OPEN'} end
redis.call('SET', result, body)
redis.call('HSET', turn, 'state', t.ending, 'result_at', now)
emit(events, 'result', cjson.decode(data))
return {'PUBLISHED'}
