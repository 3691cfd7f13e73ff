--[[
Publish the result, once, although no step of the chain sends it.

KEYS   turn result events
ARGV   body data
REPLY  PUBLISHED | ALREADY | OPEN
]]
-- @include lib/publish
-- @include lib/fields
local t = read(turn, {'state', 'ending'})
if t.state ~= 'closing' then return {t.state == t.ending and t.state and 'ALREADY' or 'OPEN'} end
publish(turn, result, events, t.ending, body, data)
return {'PUBLISHED'}
