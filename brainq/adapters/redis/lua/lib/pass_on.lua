-- Pass on a doorbell that came to a worker which may not answer it (lib/refusal), into the queue `QUEUE@BUILD`, which
-- only the workers of a suitable build read. This happens once; afterwards the sweeper handles the bell, so that it is
-- not passed to and fro. `passed` of the turn or call has RUNG AT and BUILD; a later bell has another time.
-- @include lib/ring
-- @include lib/served
local function passed_to(passed, rung_at)
  local at, to = (passed or ''):match('^(%S+) (%S+)$')
  return at and tonumber(at) == tonumber(rung_at) and to or nil
end

local function place_of(queue, passed, rung_at)
  local to = passed and passed_to(passed, rung_at)
  return to and queue .. '@' .. to or queue
end

-- Return whether a bell must be lost. A bell in the queue of a build whose workers are gone counts as lost, too.
-- @lazy
local function bell_is_gone(queue, passed, rung_at, rering_ms)
  local to = passed and passed_to(passed, rung_at)
  if to and not to:find('^format%-') and not served_by(queue, '@' .. to) then
    return now - tonumber(rung_at or 0) >= rering_ms
  end
  return bell_is_lost(to and queue .. '@' .. to or queue, rung_at, rering_ms)
end

-- Return the build or format whose queue the bell goes to, if there is one. All workers that know a format read its
-- queue.
local function goes_to(why, queue, t)
  if why == 'other_format' then return 'format-' .. t.format end
  if why == 'ramp' then return t.ramp end
  return why == 'other_build' and (served_by(queue, t.pin) or served_by(queue, released_to(t.pin)))
end

-- Pass the bell on. `t` has the fields behind the refusal, and `rung` (or `rung_at`) and `passed` of the bell. `key`,
-- `rung` and `passed` name the hash and the fields that store these.
-- @lazy
local function pass_on(why, queue, t, key, rung, passed, sid, tid, id, suffix, args, tool)
  local to = not passed_to(t.passed, t.rung or t.rung_at) and goes_to(why, queue, t)
  if not to then return end
  redis.call('HSET', key, rung, now, passed, now .. ' ' .. to)
  ring(queue .. '@' .. to, sid, id, suffix .. '.passed-' .. now, args, tid, tool)
end
