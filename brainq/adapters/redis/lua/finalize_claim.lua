--[[
Claim the next finalizer step, if the doorbell names it and it has no owner. `lost` counts the workers that claimed it before and did
not report its end. `past` names the steps that an older build ran ahead of a failing step. A worker that may not continue the turn
(lib/refusal) gets the step only if the turn ended more than `left_ms` ago: then no worker seems to have its brain, and the returned
brain is the name of no brain. Whatever the reply, the step's place in the list is free for the next waiting turn. A repeated claim
of the owner gets the same reply.

KEYS   turn
ARGV   sid tid owner step lease_ms:n brains:words left_ms:n
REPLY  GO fence:n tries:n revision:n sent:b lost:n brain waited_ms:n past | DROP
       why:gone/stale/held/later/no_brain/other_build/other_format
]]
-- @include lib/now
-- @include lib/final_queue
-- @include lib/refusal
-- @include lib/pass_on
-- @lazy
local function pass_on_final(why, t, place, since)
  local to = not place:find('@', 1, true) and goes_to(why, 'finalize', t)
  if not to then return end
  if place == 'queue' then leave_finals(sid, tid) end
  redis.call('HSET', turn, note_bell('finalize@' .. to, since))
  ring_final('finalize@' .. to, sid, tid, step, t.fin_fence, 'again')
end

local function claim()
  local t = read(turn, {'fin_step', 'fin_owner', 'fin_lease', 'fin_fence', 'fin_tries', 'fin_rung', 'fin_retry_at', 'revision',
    'result_at', 'fin_lost', 'brain', 'closing_at', 'fin_ahead', 'fin_past', 'fin_bell', 'format', 'pin'})
  if not t.fin_step then return {'DROP', 'gone'} end
  if t.fin_step ~= step then return {'DROP', 'stale'} end
  local refused = refusal(brains, t, turn)
  local place, since = place_of_bell(t)
  local function grant(fence, tries, lost)
    return {'GO', fence, tries, t.revision or '0', t.result_at and '1' or '0', lost, refused == 'other_build' and '#' or t.brain or '',
      math.max(0, now - (since or tonumber(t.fin_rung) or now)), t.fin_past or ''}
  end
  if t.fin_owner ~= '' and tonumber(t.fin_lease or 0) > now then
    if t.fin_owner ~= owner then return {'DROP', 'held'} end
    return grant(tonumber(t.fin_fence), tonumber(t.fin_tries), tonumber(t.fin_lost or 1) - 1)
  end
  -- Builds before 28 November 2026 ran later steps, `fin_ahead`, while it waited: those follow it here, so it does not wait.
  if (t.fin_ahead or '') == '' and tonumber(t.fin_retry_at or 0) > now then return {'DROP', 'later'} end
  if refused and (refused == 'other_format' or now < tonumber(t.closing_at or 0) + left_ms) then
    pass_on_final(refused, t, place, since)
    return {'DROP', refused}
  end
  -- A copy of its bell was answered, and the turn no longer waits. This does not show that the list has a free place.
  if place == 'queue' then leave_finals(sid, tid) else mark_claimed(place, t.fin_rung) end
  local fence, tries, lost = t.fin_fence + 1, t.fin_tries + 1, tonumber(t.fin_lost or 0)
  redis.call('HSET', turn, 'fin_fence', fence, 'fin_tries', tries, 'fin_owner', owner, 'fin_lease', now + lease_ms,
    'fin_ahead', '', 'fin_lost', lost + 1)  -- until this one reports its end
  return grant(fence, tries, lost)
end
local reply = claim()
fill_finals()
return reply
