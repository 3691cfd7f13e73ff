--[[
Publish a part of the reply that is being written, or of the reasoning before it (`kind`). A higher attempt replaces the
text of a lower one. `under_way` is the usage of the attempt so far, after its step and number, or "" if it is unknown.
`part` is new for each text, so that a repeated call publishes it once.

KEYS   turn events
ARGV   owner fence:n step:n attempt:n part kind text under_way
REPLY  OK | LOST
]]
-- @include lib/event
-- @include lib/owner_fence
if not is_owned_by(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'part') == part then return {'OK'} end
redis.call('HSET', turn, 'part', part, unpack(under_way ~= '' and {'under_way', under_way} or {}))
emit(events, kind, {step = step, attempt = attempt, text = text})
return {'OK'}
