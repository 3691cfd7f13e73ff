-- End a finalizer step, and continue the chain with the next one. Its owner takes that step at once, under the next
-- fence, unless `owner` is empty, or the result is out while other turns wait for theirs: then it is rung for. Returns
-- whether it was taken. Uses the script's names: turn sid tid fence next_step owner lease_ms.
-- @include lib/now
-- @include lib/final_queue
-- @lazy
local function ring_next_step(is_sent)
  -- Steps after the result come behind steps that lead to the results of other turns.
  local place = is_sent and 'finalize_later' or place_for_final()
  redis.call('HSET', turn, 'fin_step', next_step, 'fin_owner', '', 'fin_tries', 0, 'fin_retry_at', 0,
    'fin_failing_since', 0, 'fin_lost', 0, note_bell(place))
  ring_final(place, sid, tid, next_step, fence)
end

local function take_next_step(is_sent)
  if owner ~= '' and (not is_sent or waiting_in('finalize') == 0) then
    redis.call('HSET', turn, 'fin_step', next_step, 'fin_owner', owner, 'fin_fence', fence + 1, 'fin_tries', 1,
      'fin_lease', now + lease_ms, 'fin_rung', now, 'fin_retry_at', 0, 'fin_failing_since', 0, 'fin_lost', 1)
    return true
  end
  ring_next_step(is_sent)
  return false
end
