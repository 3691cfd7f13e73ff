--[[
Tell readers a part of the reply that is being written, or of what was thought before it (`kind`). A higher attempt
replaces the text of a lower one.
`part` is new for each text, so that telling it twice is telling it once.

KEYS   turn events
ARGV   owner fence:n step:n attempt:n part kind text
REPLY  OK | LOST
]]
-- @include lib/event
-- @include lib/holds
if not holds(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'part') == part then return {'OK'} end
redis.call('HSET', turn, 'part', part)
emit(events, kind, {step = step, attempt = attempt, text = text})
return {'OK'}
