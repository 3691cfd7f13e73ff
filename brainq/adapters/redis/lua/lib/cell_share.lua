-- The part of a limit that this cell may use, if several cells share the limit. The home cell grants it (share_put),
-- and it is 0 once it has lapsed. The home cell grants more soon if requests wait, so a waiting request checks again
-- soon. Uses the names of the script, and lib/rates.
local WHOLE, SHARE_LOOK_MS = 1000000, 2000

local function share_now()
  local s = read(rule, {'share', 'share_until'})
  return now < tonumber(s.share_until or 0) and tonumber(s.share) or 0
end

local function part_of(limit, share) return limit and math.floor(limit * share / WHOLE) end

-- Return this cell's part of both limits, when a waiting request checks again, and until when no request may go.
local function shared_limits(most, most_tokens)
  local share = shared == '1' and share_now() or WHOLE
  if share == WHOLE then return most, most_tokens, math.huge, now end
  local own, own_tokens = part_of(most, share), part_of(most_tokens, share)
  local expected, soon = tonumber(redis.call('ZSCORE', due, ticket) or 0), now + SHARE_LOOK_MS
  if expected > now and expected < soon then soon = expected end
  if own == 0 or own_tokens == 0 then return nil, nil, soon, soon end
  return own, own_tokens, soon, now
end
