--[[
Claim the ownership of a turn for one advance. A doorbell carries the fence under which it was rung. Only the newest
doorbell gets the turn, and each claim raises the fence. A cancel, or a deadline that passed more than 2 s ago, takes
the turn from its owner or from the calls that it awaits; after a cancel, running calls have `grace_ms` to end. `lost`
means that the previous owner had stopped beating. A turn that has lost its worker `most_lost` times since it last
advanced is not given to a worker that has other turns. A worker without its brain (lib/refusal) gets it only to end it:
`only_ends`. `stops` is what operators have stopped, as a JSON array, or empty. `declared` is JSON if builds are
distinguished (lib/builds), or else empty.

KEYS   turn budget history notices events spends
ARGV   sid tid owner fence:n lease_ms:n grace_ms:n most_lost:n brains:words declared
REPLY  GO fence:n now:n lost:b stops only_ends:b | DROP
       why:TurnState/gone/stale/held/grace/suspect/awaits/no_brain/other_build/other_format
]]
-- @include lib/claim_turn
-- @include lib/overdue
-- @include lib/event
-- @include lib/ring
-- @include lib/budget
-- @include lib/money
-- @include lib/cancel
-- @include lib/owner_gone
-- @include lib/refusal
-- @include lib/pass_on
-- @include lib/capacity
-- @include lib/waits_for
-- @include lib/stops
local t = read(turn, {'state', 'fence', 'awaits', 'owner', 'lease_until', 'cancel', 'rung_at', 'cancel_at', 'lost_attempts',
  'isolated', 'thinking', 'thinking_step', 'attempt', 'estimate', 'estimate_usd', 'under_way', 'aux_open', 'step', 'aux_tokens',
  'aux_usd', 'aux_under_way', 'brain', 'waits_for', 'resumes_at', 'money', 'line', 'format', 'pin', 'passed', 'builds'})
if not t.state then return {'DROP', 'gone'} end
if t.state ~= 'active' then return {'DROP', t.state} end
local refused = refusal(brains, t, turn)
-- The reply to its owner was lost.
if t.owner == owner and tonumber(t.fence) == fence + 1 then
  return {'GO', fence + 1, now, '0', are_stops() and all_stops() or '', refused and '1' or '0'}
end
if tonumber(t.fence) ~= fence then return {'DROP', 'stale'} end

local deadline, cancelled = tonumber(redis.call('HGET', budget, 'deadline')), t.cancel == '1'
local interrupt = cancelled or now > deadline + OVERDUE_MS
if cancelled and now < tonumber(t.cancel_at or 0) + grace_ms and runs_calls(turn) then return {'DROP', 'grace'} end
local is_held = t.owner ~= '' and tonumber(t.lease_until or 0) > now
if is_held and not interrupt then return {'DROP', 'held'} end
if t.awaits ~= 'coordinator' and not interrupt and now < deadline then return {'DROP', 'awaits'} end
if not refused and declared ~= '' and not interrupt then refused = begins_elsewhere(t, declared) end
if refused and (refused == 'other_format' or not interrupt and now < deadline) then
  pass_on(refused, 'turns', t, turn, 'rung_at', 'passed', sid, tid, tid, 'advance.' .. fence, {sid, tid, fence})
  return {'DROP', refused == 'ramp' and 'other_build' or refused}
end
local lost = t.owner ~= '' and not is_held
if not interrupt and now < deadline and (tonumber(t.lost_attempts) or 0) + (lost and 1 or 0) >= most_lost then
  return {'DROP', 'suspect'}
end
mark_claimed(place_of('turns', t.passed, t.rung_at), t.rung_at)
if lost then note_lost(turn, t.owner) end
-- The previous owner died, or was cut off, during a model call. Charge what the call may have cost.
if t.thinking == '1' then charge_thinking(budget, spends, t) end
if t.aux_open and t.aux_open ~= '' then
  charge_unknown(budget, spends, t.aux_under_way, t.aux_open, t.step, t.aux_tokens, t.aux_usd)
end
if t.money then settle_money(turn, t.money, charged_usd) end
if t.line then leave_line(turn, t.line, sid, tid) t.waits_for = nil end
if t.waits_for then
  redis.call('HDEL', turn, 'waits_for', 'resumes_at', 'stop')
  -- The time of a turn without a reply begins with its place, whether that comes early or late.
  if t.step == '0' and t.waits_for ~= QUARANTINE and now < deadline then
    redis.call('HSET', budget, 'deadline', now + tonumber(redis.call('HGET', budget, 'timeout_ms')))
  elseif (t.step ~= '0' or t.waits_for == QUARANTINE) and (tonumber(t.resumes_at or '') or 0) > now then
    redis.call('HINCRBY', budget, 'deadline', now - t.resumes_at) -- it waited for less than it was given
    if t.waits_for == QUARANTINE then redis.call('HINCRBY', turn, 'quarantine_ms', now - t.resumes_at) end
  end
  add_live(sid, tid, t.brain)
end
own_turn(t, fence + 1, {owner = owner, lease_ms = lease_ms, declared = declared}, refused)
return {'GO', fence + 1, now, lost and '1' or '0', has_stops and all_stops() or '', refused and '1' or '0'}
