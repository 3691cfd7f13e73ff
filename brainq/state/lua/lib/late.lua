-- A result that comes after its call was given up: no part of the turn, but a write that took effect after all is told
-- to the model. Uses the script's names: turn trace session_history notices, and lib/now. False: it was no longer awaited.
local function came_late(call, status, effect, noted, notice)
  if status == 'timed_out' then redis.call('HSET', trace, call .. ':status', 'timed_out_late') end
  if status ~= 'timed_out' and status ~= 'cancelled' and status ~= 'unknown' then return false end
  if effect == 'read_only' or notice == '' or noted then return true end
  -- It makes what was read before it stale.
  local state = redis.call('HGET', turn, 'state')
  if state == 'active' or state == 'parked' then redis.call('HINCRBY', turn, 'write_epoch', 1) end
  redis.call('HSET', trace, call .. ':noted', '1')
  redis.call('RPUSH', notices, notice)
  -- An idle session's notices go with its history; where that is gone already, after a day.
  local keep_ms = redis.call('PTTL', session_history)
  if keep_ms == -2 then keep_ms = 86400000 end
  if keep_ms > 0 then redis.call('PEXPIRE', notices, keep_ms) end
  return true
end
