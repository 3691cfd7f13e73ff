-- Redis' clock stepped back since this turn was last looked at: what lies further ahead than it ever may is brought near.
-- Else a lease, a bell or a deadline would stand until the clock has caught up. Uses the names of turn_sweep.
local ROOM_MS = 1000

local function bring_near(key, field, most_ms)
  local at = tonumber(redis.call('HGET', key, field) or '')
  if at and at > now + most_ms then redis.call('HSET', key, field, now + most_ms) end
end

local function mend_clock()
  local seen = redis.call('HMGET', turn, 'seen_at', 'created_at', 'step', 'n_calls')
  local last = tonumber(seen[1] or seen[2] or 0) or 0
  if not seen[1] or last > now or now > last + ROOM_MS then redis.call('HSET', turn, 'seen_at', now) end
  if last <= now + ROOM_MS then return end
  for _, field in ipairs({'rung_at', 'cancel_at', 'active_at', 'created_at', 'closing_at', 'parked_at', 'fin_rung',
    'fin_failing_since'}) do bring_near(turn, field, 0) end
  for _, field in ipairs({'lease_until', 'fin_lease'}) do bring_near(turn, field, longest_lease_ms) end
  bring_near(turn, 'fin_retry_at', rering_ms * 12)
  bring_near(turn, 'opening_until', rering_ms * 12)
  bring_near(budget, 'deadline', tonumber(redis.call('HGET', budget, 'timeout_ms') or 0) or 0)
  for i = 0, tonumber(seen[4] or 0) - 1 do
    local call = 'c' .. seen[3] .. '-' .. i
    for _, field in ipairs({':rung_at', ':started_at', ':dispatched_at'}) do
      bring_near(trace, call .. field, 0)
    end
    bring_near(trace, call .. ':lease', longest_lease_ms)
  end
end
