-- Restore what SQL kept of a turn (`RestoredState` in contracts/people.py): its brakes, the flags of its session that
-- no turn has taken, and its input. Returns why the turn must be cancelled, or nil. Uses the script's names: turn
-- events flags readiness mailbox receipts tid, and lib/now.
-- @include lib/event
local function give_back_flag(id, brake)
  if redis.call('HEXISTS', flags, id) == 1 then return end
  redis.call('HSET', flags, id, cjson.encode(brake))
  if not brake.turn then redis.call('RPUSH', readiness, id) end
end

-- @lazy
local function give_back(kept)
  local cancelled, holds = nil, {}
  for _, brake in ipairs(kept.brakes) do
    if brake.kind == 'cancel' then
      cancelled = brake.reason
    elseif brake.kind == 'flag' and not brake.taken then
      give_back_flag(brake.id, {timeout_ms = brake.timeout_ms, policy = brake.policy, reason = brake.reason})
    else
      local kind = brake.kind == 'flag' and 'readiness' or 'hold'
      holds[brake.id] = {ends = now + brake.left_ms, policy = brake.policy, reason = brake.reason, kind = kind}
      emit(events, 'hold.placed', {hold = brake.id, reason = brake.reason, kind = kind})
      if kind == 'readiness' then
        give_back_flag(brake.id, {timeout_ms = brake.timeout_ms, policy = brake.policy, reason = brake.reason, turn = tid})
        redis.call('HSET', turn, 'flag', brake.id, 'readiness', brake.id)
      end
    end
  end
  if next(holds) then redis.call('HSET', turn, 'holds', cjson.encode(holds)) end
  for _, input in ipairs(kept.inputs) do
    redis.call('RPUSH', mailbox, input.item)
    redis.call('HINCRBY', turn, 'mail_bytes', #input.item)
    redis.call('HSET', receipts, input.id, 'accepted')
    emit(events, 'input.accepted', {input = input.id})
  end
  return cancelled
end
