-- Check a turn that a coordinator must continue. It is rung for again if its owner is gone, its wait is over, or its
-- bell is lost. Uses the names of turn_sweep.
-- @include lib/pass_on
local function sweep_coordinator(owned, deadline, resumes_at)
  if owned then soon(tonumber(t.lease_until) + 1)
  elseif now < resumes_at then soon(resumes_at)
  elseif t.owner == '' and resumes_at == 0 and nobody_serves('turns', t) then soon(deadline)
  elseif resumes_at > 0 or t.owner ~= '' or bell_is_gone('turns', t.passed, t.rung_at, rering_ms) then
    if t.owner ~= '' then lost = true note_lost(turn, t.owner) end
    redis.call('HSET', turn, 'owner', '', 'rung_at', now, 'resumes_at', '')
    add_live(sid, tid, t.brain)
    ring_anew('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
  else -- it waits in a long queue: check again after as long as it has waited
    after = math.max(after, math.min(now - tonumber(t.rung_at or now), rering_ms * 12))
    soon(deadline)
  end
end
