-- The finalizer of a turn that is over: rung again, or the result sent by the sweeper. True: nothing is left to look
-- at. Uses the names of turn_sweep.
local function sweep_final()
  local fin = redis.call('HMGET', turn, 'fin_step', 'fin_owner', 'fin_lease', 'fin_retry_at', 'fin_rung',
    'fin_failing_since', 'closing_at', 'fin_fence')
  if state == 'closing' then
    local since = tonumber(fin[6] or 0) or 0
    if (since > 0 and now - since >= failing_ms) or now - tonumber(fin[7]) >= unserved_ms then
      actions[1] = 'deliver'
    else
      soon((since > 0 and since + failing_ms or tonumber(fin[7]) + unserved_ms) + 1)
    end
  end
  if not fin[1] or fin[1] == '' then
    if #actions == 0 then return true end
  elseif fin[2] ~= '' and tonumber(fin[3] or 0) > now then
    soon(tonumber(fin[3]) + 1)
  else
    local retry_at, lapsed = tonumber(fin[4] or 0) or 0, fin[2] ~= ''
    local queue = state == 'closing' and 'finalize' or 'finalize_later'
    if retry_at > now then
      soon(retry_at)
    elseif lapsed or retry_at > tonumber(fin[5] or 0) or bell_is_lost(queue, fin[5], rering_ms) then
      redis.call('HSET', turn, 'fin_owner', '', 'fin_rung', now)
      ring_anew(queue, sid, tid, 'final.' .. fin[1] .. '.' .. fin[8], {sid, tid, fin[1]}, tid)
    end
  end
  return false
end
