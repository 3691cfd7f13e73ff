-- A turn has one readiness hold at most: a newer word about it takes the place of the older.
-- Uses the script's names: turn events, and lib/now.
-- @include lib/event
local function set_readiness(word)
  local held = redis.call('HMGET', turn, 'holds', 'readiness')
  local holds = held[1] and held[1] ~= '' and cjson.decode(held[1]) or {}
  if held[2] and holds[held[2]] then
    holds[held[2]] = nil
    emit(events, 'hold.released', {hold = held[2]})
  end
  local flag = ''
  if word ~= 'ready' then
    local hold = cjson.decode(word)
    flag = hold.id
    holds[flag] = {ends = now + hold.timeout_ms, policy = hold.policy, reason = hold.reason, kind = 'readiness'}
    emit(events, 'hold.placed', {hold = flag, reason = hold.reason, kind = 'readiness'})
  end
  redis.call('HSET', turn, 'holds', next(holds) and cjson.encode(holds) or '', 'readiness', flag)
end
