-- Uses the script's name: run.
-- @include lib/run
-- The field that says from which Redis an attempt is claimed, and its value.
-- @lazy
local function note_redis(call, attempt)
  local known = redis.call('GET', run)
  if not known then
    known = redis_run()
    redis.call('SET', run, known, 'PX', 10000)
  end
  return call .. ':run', attempt .. ' ' .. known
end
