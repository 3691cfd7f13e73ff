--[[
Tell readers a part of the reply that is being written. A higher attempt replaces the text of a lower one.

KEYS   turn events
ARGV   owner fence:n step:n attempt:n text
REPLY  OK | LOST
]]
-- @include lib/event
-- @include lib/holds
if not holds(turn, owner, fence) then return {'LOST'} end
emit(turn, events, 'text.delta', {step = step, attempt = attempt, text = text})
return {'OK'}
