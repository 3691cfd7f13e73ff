--[[
Tell readers that the model could not be had, and is asked again after a wait: `kind` is the provider's word for what
went wrong. `part` is new for each, so that telling it twice is telling it once.

KEYS   turn events
ARGV   owner fence:n step:n attempt:n part kind wait_ms:n
REPLY  OK | LOST
]]
-- @include lib/event
-- @include lib/holds
if not holds(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'part') == part then return {'OK'} end
redis.call('HSET', turn, 'part', part)
emit(events, 'step.retried', {step = step, attempt = attempt, kind = kind, wait_ms = wait_ms})
return {'OK'}
