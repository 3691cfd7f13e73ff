-- Cancel turns. A turn that waits for its session ends at once. A live turn is marked, and the mark outlives every
-- process; processes that run something of it get a signal. Its coordinator is rung if no call is running. Otherwise
-- the last call to end rings it, or the sweeper after the grace period.
-- @include lib/fields
-- @include lib/end_queued
-- @include lib/resume

-- @lazy
local function runs_calls(turn_key)
  local t = read(turn_key, {'awaits', 'step', 'n_calls'})
  if t.awaits ~= 'calls' then return false end
  for i = 0, tonumber(t.n_calls or 0) - 1 do
    if redis.call('HGET', turn_key .. ':trace', 'c' .. t.step .. '-' .. i .. ':status') == 'running' then return true end
  end
  return false
end

-- @lazy
local function cancel_queued(waiting_key, turn_key, sid, tid, reason, first_step)
  redis.call('HSET', turn_key, 'cancel', '1')
  end_queued(waiting_key, turn_key, sid, tid, 'cancelled', 'cancelled', '', reason, first_step)
end

-- Cancel all turns that wait for their session. Returns their ids.
-- @lazy
local function cancel_all_queued(waiting_key, base, sid, reason, first_step)
  local all = redis.call('LRANGE', waiting_key, 0, -1)
  for _, tid in ipairs(all) do cancel_queued(waiting_key, base .. tid, sid, tid, reason, first_step) end
  return all
end

-- @lazy
local function cancel_live(turn_key, sid, tid, reason, channel)
  if redis.call('HGET', turn_key, 'cancel') == '1' then return end
  redis.call('HSET', turn_key, 'cancel', '1', 'cancel_at', now, 'cancel_reason', reason, 'rung_at', now)
  emit(turn_key .. ':events', 'turn.cancelling', {reason = reason})
  resume_turn(turn_key, turn_key .. ':budget', turn_key .. ':events', 'calls')
  look_within(sid, tid, SOON_MS)
  redis.call('PUBLISH', channel, sid .. ' ' .. tid)
  if runs_calls(turn_key) then return end
  local fence = tonumber(redis.call('HGET', turn_key, 'fence'))
  ring('turns', sid, tid, 'cancel.' .. fence, {sid, tid, fence}, tid)
end
