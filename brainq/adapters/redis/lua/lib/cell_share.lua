-- Of a limit that several cells share, what this one may use: as home gave it (share_put), and nothing once that has lapsed. Home gives
-- more soon where requests wait: so who waits looks again soon. Uses the names of the script, and lib/rates.
local WHOLE, SHARE_LOOK_MS = 1000000, 2000

local function share_now()
  local s = read(rule, {'share', 'share_until'})
  return now < tonumber(s.share_until or 0) and tonumber(s.share) or 0
end

local function part_of(limit, share) return limit and math.floor(limit * share / WHOLE) end

-- What of both limits is this cell's; when who waits looks again, and until when nothing goes.
local function shared_limits(most, most_tokens)
  local share = shared == '1' and share_now() or WHOLE
  if share == WHOLE then return most, most_tokens, math.huge, now end
  local own, own_tokens = part_of(most, share), part_of(most_tokens, share)
  local expected, soon = tonumber(redis.call('ZSCORE', due, ticket) or 0), now + SHARE_LOOK_MS
  if expected > now and expected < soon then soon = expected end
  if own == 0 or own_tokens == 0 then return nil, nil, soon, soon end
  return own, own_tokens, soon, now
end
