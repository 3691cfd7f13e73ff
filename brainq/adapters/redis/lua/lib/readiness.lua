-- Set the readiness of a turn. It has at most one readiness hold: a newer one replaces the older one. Uses the script's
-- names: turn events, and lib/now.
-- @include lib/event
-- @include lib/fields
-- @lazy
local function set_readiness(word)
  local t = read(turn, {'holds', 'readiness'})
  local holds = t.holds and t.holds ~= '' and cjson.decode(t.holds) or {}
  if t.readiness and holds[t.readiness] then
    holds[t.readiness] = nil
    emit(events, 'hold.released', {hold = t.readiness})
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
