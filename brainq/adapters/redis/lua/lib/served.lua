-- Which build's workers read a queue and have a pinned brain: each says so every few seconds (`serves:QUEUE:DIGEST`), and for a day
-- it is known when one last did.
local SERVED_KEPT_MS, SERVED_FOR_MS, REFUSED_AFTER_MS = 86400000, 10000, 60000

-- nil, or for how long no worker has reported it; a day where that is not known.
local function away_ms(queue, digest)
  local left = redis.call('PTTL', OUTBOX_PREFIX .. 'serves:' .. queue .. ':' .. digest)
  return left < 0 and SERVED_KEPT_MS or SERVED_KEPT_MS - left
end

local function served_by(queue, digest)
  if not digest or away_ms(queue, digest) > SERVED_FOR_MS then return end
  return redis.call('GET', OUTBOX_PREFIX .. 'serves:' .. queue .. ':' .. digest)
end

local function released_to(digest) return redis.call('HGET', OUTBOX_PREFIX .. 'released', digest) end

-- Whether a turn's doorbell would find nobody who may answer it: it is rung when there is one.
local function nobody_serves(queue, t)
  return t.pin and not served_by(queue, t.pin) and not served_by(queue, released_to(t.pin))
end

-- Whether new turns of a session that is pinned to it would wait for nobody: no coordinator has had it for a minute.
-- @lazy
local function is_unserved(digest)
  if away_ms('turns', digest) < REFUSED_AFTER_MS then return false end
  local released = released_to(digest)
  return not released or away_ms('turns', released) >= REFUSED_AFTER_MS
end
