-- Which worker may continue a turn: one that reads the format of its state and has its brain. If the brain is pinned
-- (`pin`), it must be the very brain that began the turn. `brains` has the names of the worker's brains, and `#DIGEST`
-- of each.
-- @include lib/has_brain
-- @include lib/state_format

-- Return whether the turns of a pinned brain were released to a brain of this worker (`brainq versions release`). From
-- then on they are pinned to that brain.
-- @lazy
local function is_released_to(brains, t, turn_key)
  local digest = redis.call('HGET', OUTBOX_PREFIX .. 'released', t.pin)
  if not digest or not has_word(brains, '#' .. digest) then return false end
  redis.call('HSET', turn_key, 'pin', digest)
  t.pin = digest
  return true
end

-- Return why this worker may not continue the turn, or nil if it may. `t` has the format, brain and pin of the turn.
local function refusal(brains, t, turn_key)
  if not reads_format(t.format) then return 'other_format' end
  if not has_brain(brains, t.brain) then return 'no_brain' end
  if t.pin and not has_word(brains, '#' .. t.pin) and not is_released_to(brains, t, turn_key) then return 'other_build' end
end
