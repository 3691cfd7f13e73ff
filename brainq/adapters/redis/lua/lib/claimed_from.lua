-- Uses the names of call_claim.
-- @include lib/run
-- The field that says from which Redis it is claimed, and its value.
-- @lazy
local function note_redis()
  local known = redis.call('GET', run)
  if not known then
    known = redis_run()
    redis.call('SET', run, known, 'PX', 10000)
  end
  return call .. ':run', attempt .. ' ' .. known
end
