-- Check the finalizer of a turn that is over: it is rung for again, or the sweeper sends the result. Returns true if
-- nothing is left to check. Uses the names of turn_sweep.
local function final_is_gone(place, rung_at)
  local queue, build = place:match('^([^@]+)@(.+)$')
  return bell_is_gone(queue or place, build and rung_at .. ' ' .. build, rung_at, rering_ms)
end

local function sweep_final()
  local f = read(turn, {'fin_step', 'fin_owner', 'fin_lease', 'fin_retry_at', 'fin_rung', 'fin_failing_since', 'closing_at',
    'fin_fence', 'fin_bell', 'result_at'})
  if state == 'closing' then
    local since = tonumber(f.fin_failing_since or 0) or 0
    if (since > 0 and now - since >= failing_ms) or now - tonumber(f.closing_at) >= unserved_ms then
      actions[1] = 'deliver'
    else
      soon((since > 0 and since + failing_ms or tonumber(f.closing_at) + unserved_ms) + 1)
    end
  end
  if not f.fin_step or f.fin_step == '' then
    if #actions == 0 then return true end
  elseif f.fin_owner ~= '' and tonumber(f.fin_lease or 0) > now then
    soon(tonumber(f.fin_lease) + 1)
  else
    local retry_at, lapsed = tonumber(f.fin_retry_at or 0) or 0, f.fin_owner ~= ''
    if retry_at > now then
      soon(retry_at)
      return false
    end
    local place = place_of_bell(f)
    if place == 'queue' and finals_wait(sid, tid) then
      fill_finals()
    elseif place == 'queue' or lapsed or retry_at > tonumber(f.fin_rung or 0) or final_is_gone(place, f.fin_rung) then
      place = state == 'closing' and place_for_final() or 'finalize_later'
      redis.call('HSET', turn, 'fin_owner', '', note_bell(place, now, 'again'))
      ring_final(place, sid, tid, f.fin_step, f.fin_fence, 'again')
    end
  end
  return false
end
