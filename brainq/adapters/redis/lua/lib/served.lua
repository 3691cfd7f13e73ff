-- Which build's workers read a queue and have a pinned brain. Each reports so every few seconds
-- (`serves:QUEUE:DIGEST`), and the last report is kept for a day.
local SERVED_KEPT_MS, SERVED_FOR_MS, REFUSED_AFTER_MS = 86400000, 10000, 60000

-- Return for how many ms no worker has reported the queue. It is a day if that is unknown.
local function away_ms(queue, digest)
  local left = redis.call('PTTL', OUTBOX_PREFIX .. 'serves:' .. queue .. ':' .. digest)
  return left < 0 and SERVED_KEPT_MS or SERVED_KEPT_MS - left
end

local function served_by(queue, digest)
  if not digest or away_ms(queue, digest) > SERVED_FOR_MS then return end
  return redis.call('GET', OUTBOX_PREFIX .. 'serves:' .. queue .. ':' .. digest)
end

local function released_to(digest) return redis.call('HGET', OUTBOX_PREFIX .. 'released', digest) end

-- Return whether no worker could answer a turn's doorbell. It is then rung once there is one.
local function nobody_serves(queue, t)
  return t.pin and not served_by(queue, t.pin) and not served_by(queue, released_to(t.pin))
end

-- Return whether new turns of a session that is pinned to this brain would wait in vain, because no coordinator has had
-- the brain for a minute.
-- @lazy
local function is_unserved(digest)
  if away_ms('turns', digest) < REFUSED_AFTER_MS then return false end
  local released = released_to(digest)
  return not released or away_ms('turns', released) >= REFUSED_AFTER_MS
end
