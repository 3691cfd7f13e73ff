--[[
Publish that the model was unavailable and will be called again after a wait. `kind` is the provider's word for the
failure, and `model` the model that is called next if there are several. `part` is new for each retry, so that a
repeated call publishes it once.

KEYS   turn events
ARGV   owner fence:n step:n attempt:n part kind wait_ms:n model
REPLY  OK | LOST
]]
-- @include lib/event
-- @include lib/owner_fence
if not is_owned_by(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'part') == part then return {'OK'} end
redis.call('HSET', turn, 'part', part)
emit(events, 'step.retried', {
  step = step, attempt = attempt, kind = kind, wait_ms = wait_ms, model = model ~= '' and model or nil,
})
return {'OK'}
