-- A doorbell that came to a worker which may not answer it (lib/refusal) is passed on: into the queue that only the workers
-- of a build that may read, `QUEUE@BUILD`. Once: then it is the sweeper's, so that nobody passes it to and fro. Where it is says
-- `passed` of its turn or call, RUNG AT and BUILD; of a bell rung since the time is another.
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

-- Whether a bell must be lost; one in the queue of a build is, too, whose workers are gone.
-- @lazy
local function bell_is_gone(queue, passed, rung_at, rering_ms)
  local to = passed and passed_to(passed, rung_at)
  if to and not to:find('^format%-') and not served_by(queue, '@' .. to) then
    return now - tonumber(rung_at or 0) >= rering_ms
  end
  return bell_is_lost(to and queue .. '@' .. to or queue, rung_at, rering_ms)
end

-- Whose queue it goes to, where there is one: of a format, all read it who know that.
local function goes_to(why, queue, t)
  if why == 'other_format' then return 'format-' .. t.format end
  if why == 'ramp' then return t.ramp end
  return why == 'other_build' and (served_by(queue, t.pin) or served_by(queue, released_to(t.pin)))
end

-- `t`: what the refusal came from, and of the bell `rung` (or `rung_at`) and `passed`; `key`, `rung` and `passed`: the fields that say these.
-- @lazy
local function pass_on(why, queue, t, key, rung, passed, sid, tid, id, suffix, args, tool)
  local to = not passed_to(t.passed, t.rung or t.rung_at) and goes_to(why, queue, t)
  if not to then return end
  redis.call('HSET', key, rung, now, passed, now .. ' ' .. to)
  ring(queue .. '@' .. to, sid, id, suffix .. '.passed-' .. now, args, tid, tool)
end
