-- Record a result that comes after its call was given up. It does not enter the turn, but a write that took effect
-- after all is reported to the model. `c` is the call as it was read, `status` its status when it was given up, and
-- `state` the turn's. Returns false if the result was no longer awaited. Uses the script's names: turn trace history
-- notices, and lib/now.
-- @lazy
local function came_late(call, c, status, state, notice)
  if status == 'timed_out' then
    redis.call('HSET', trace, call .. ':status', 'timed_out_late')
    redis.call('HDEL', trace, call .. ':retryable')  -- it has ended after all
  end
  if status ~= 'timed_out' and status ~= 'cancelled' and status ~= 'unknown' then return false end
  if c.effect == 'read_only' or notice == '' or c.noted then return true end
  -- The write makes earlier reads stale.
  if state == 'active' or state == 'parked' then redis.call('HINCRBY', turn, 'write_epoch', 1) end
  redis.call('HSET', trace, call .. ':noted', '1')
  redis.call('RPUSH', notices, notice)
  -- The notices of an idle session expire with its history, or after a day if that is gone already.
  local keep_ms = redis.call('PTTL', history)
  if keep_ms == -2 then keep_ms = 86400000 end
  if keep_ms > 0 then redis.call('PEXPIRE', notices, keep_ms) end
  return true
end
