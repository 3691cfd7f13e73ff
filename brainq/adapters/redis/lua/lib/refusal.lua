-- Which worker may go on with a turn: one that reads the format of its state and has its brain; where that is pinned
-- (`pin`), the very one that began it. `brains`: the names of the worker's brains, and `#DIGEST` of each.
-- @include lib/has_brain
-- @include lib/state_format

-- A pinned brain's turns may have been released to another one (`brainq versions release`): they are its from then on.
-- @lazy
local function is_released_to(brains, t, turn_key)
  local digest = redis.call('HGET', OUTBOX_PREFIX .. 'released', t.pin)
  if not digest or not has_word(brains, '#' .. digest) then return false end
  redis.call('HSET', turn_key, 'pin', digest)
  t.pin = digest
  return true
end

-- Why this one may not; nil: it may. `t`: format, brain and pin of the turn.
local function refusal(brains, t, turn_key)
  if not reads_format(t.format) then return 'other_format' end
  if not has_brain(brains, t.brain) then return 'no_brain' end
  if t.pin and not has_word(brains, '#' .. t.pin) and not is_released_to(brains, t, turn_key) then return 'other_build' end
end
