-- The part of a window that one tenant leaves to others, so that their requests find a place at once. A tenant may have
-- four places for each free one: four fifths of the window beside tenants with few requests, and four ninths each if
-- two tenants want all of it. Nothing is held back if no other tenant has made a request for ten windows. Uses the
-- names of the script, and lib/rates.
local A_FREE_ONE, OTHERS_WINDOWS = 4, 10

-- Return the last other tenant that made a request, and when.
local function other_than(tenant, r)
  if r.asked and r.asked ~= tenant then return r.asked, tonumber(r.asked_at) end
  return r.before or '', tonumber(r.before_at or 0)
end

local function note_asked(tenant, r)
  local other, at = other_than(tenant, r)
  redis.call('HSET', rule, 'asked', tenant, 'asked_at', now, 'before', other, 'before_at', at)
end

local function is_shared(tenant, r)
  local other, at = other_than(tenant, r)
  return other ~= '' and now - at < OTHERS_WINDOWS * window_ms
end

local function own_places(tenant) return tonumber(redis.call('HGET', by, tenant) or 0) end

-- Return how many places must end first, if `before` more requests of the tenant go before.
local function over_first(own, before, taken, most)
  local lacks = own + before - A_FREE_ONE * (most - taken - before)
  return lacks < 0 and 0 or 1 + math.floor(lacks / (A_FREE_ONE + (taken > 0 and own / taken or 0)))
end

-- Return how many of the first `ahead` requests in the queue belong to tenants that may have more places. Only these
-- use up what is free.
local function ahead_with_share(ahead, taken, most)
  local left, found, looked_at = {}, 0, math.min(ahead, 200)
  if looked_at == 0 then return 0 end
  for _, id in ipairs(redis.call('ZRANGE', line, 0, looked_at - 1)) do
    local tenant = tenant_of(id)
    left[tenant] = left[tenant] or math.ceil((A_FREE_ONE * (most - taken) - own_places(tenant)) / (A_FREE_ONE + 1))
    if left[tenant] > 0 then left[tenant], found = left[tenant] - 1, found + 1 end
  end
  return found + ahead - looked_at
end

-- Return when the tenant may have one more place after its `before` earlier requests, and how many queued requests go
-- before it.
local function with_share(tenant, before, ahead, taken, most)
  local over = over_first(own_places(tenant), before, taken, most)
  if over > 0 then return over <= taken and score_at(over - 1) or rounds_later((over - taken) / most), ahead end
  return now, taken + ahead >= most and ahead_with_share(ahead, taken, most) or ahead
end
