--[[
Check one turn, repair what a script alone can repair (it rings again for lost bells), and schedule the next check, in
the same script, so that nothing can change in between. Work that needs more than Redis is returned as actions: `end
waited skip expire deliver parent`, `rescue call attempt`. If an action fails, the next check finds it again. `lost`
means that its owner has stopped beating, and that the turn was rung for. A turn that is GONE keeps its place.

KEYS   turn budget trace
ARGV   sid tid rering_ms:n failing_ms:n unserved_ms:n grace_ms:n longest_lease_ms:n
REPLY  LOOK fence:n actions:rows lost:b | ENDED | GONE
]]
-- @include lib/event
-- @include lib/final_queue
-- @include lib/owner_gone
-- @include lib/clock
-- @include lib/overdue
-- @include lib/index
-- @include lib/state_format
if redis.call('EXISTS', turn) == 0 then return {'GONE'} end
mend_clock()
local t = read(turn, {'state', 'awaits', 'owner', 'lease_until', 'rung_at', 'fence', 'cancel', 'cancel_at', 'step',
  'n_calls', 'opening_until', 'holds', 'parent', 'resumes_at', 'brain', 'stop', 'line', 'format', 'pin', 'passed'})
-- A turn in a newer format is repaired by the sweeper of the newer build.
if not reads_format(t.format) then look_next(sid, tid, rering_ms) return {'LOOK', tonumber(t.fence or 0), '', '0'} end
local state, fence, actions, after, lost = t.state, tonumber(t.fence or 0), {}, rering_ms, false
local function soon(at) if at - now < after then after = math.max(at - now, 50) end end
-- @include lib/sweep_parks
-- @include lib/unpark
-- @include lib/sweep_coordinator
-- @include lib/sweep_calls
-- @include lib/sweep_final
-- @include lib/sweep_queued
if state == 'queued' then sweep_queued()
elseif state == 'parked' then
  after = seldom_ms()
  if t.line then
    soon(math.max(tonumber(t.resumes_at) + 1, now + 50))
    if tonumber(t.resumes_at) <= now then unpark(turn, t.line, sid, tid, fence) after = rering_ms end
  else
    expire_parks()
    look_at_opening()
  end
elseif state == 'active' then
  local deadline, resumes_at = tonumber(redis.call('HGET', budget, 'deadline')), tonumber(t.resumes_at or '') or 0
  if resumes_at > now and t.stop and is_over_for(t.stop) then -- the wait is over, because the stop was lifted
    deadline, resumes_at = redis.call('HINCRBY', budget, 'deadline', now - resumes_at), now
  end
  if resumes_at == 0 then add_live(sid, tid, t.brain) end
  local owned = t.owner ~= '' and tonumber(t.lease_until or 0) > now
  if now >= deadline and (not owned or now > deadline + OVERDUE_MS) then actions[1] = 'end' end
  if t.cancel == '1' then
    local over_at = tonumber(t.cancel_at or now) + grace_ms
    if now >= over_at then actions[1] = 'end' else soon(over_at + 1) end
  end
  soon(now < deadline and deadline or deadline + OVERDUE_MS + 1)
  if #actions == 0 and t.awaits == 'coordinator' then
    -- A hold with the policy `cancel` cancels the turn even while the model is being called.
    if t.holds and t.holds ~= '' then expire_parks() end
    sweep_coordinator(owned, deadline, resumes_at)
  elseif #actions == 0 and t.awaits == 'calls' then
    expire_parks()
    look_at_opening()
    sweep_calls()
  end
else
  if sweep_final() then look_no_more(sid, tid) return {'ENDED'} end
end
if #actions > 0 then soon(now + rering_ms) end
if t.parent and t.parent ~= '' and (state == 'queued' or state == 'active' or state == 'parked') then
  actions[#actions + 1] = 'parent ' .. t.parent
  soon(now + rering_ms * 6)
end
look_next(sid, tid, after)
return {'LOOK', fence, table.concat(actions, ','), lost and '1' or '0'}
