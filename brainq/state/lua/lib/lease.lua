-- Renew the lease of a running call. Returns why not: 'lost' (it is another's) or 'closed' (its turn no longer wants it).
-- Uses the script's names: turn trace owner call attempt lease_ms, and lib/now.
local function renew_call()
  local held = redis.call('HMGET', trace, call .. ':status', call .. ':owner', call .. ':attempt')
  if held[2] ~= owner or tonumber(held[3]) ~= attempt then return 'lost' end
  local open = redis.call('HMGET', turn, 'state', 'cancel')
  if open[1] ~= 'active' or open[2] == '1' then return 'closed' end
  if held[1] ~= 'running' then return 'lost' end
  redis.call('HSET', trace, call .. ':lease', now + lease_ms)
end
