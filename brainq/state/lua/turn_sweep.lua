--[[
Look at one turn, heal what a script alone can heal (bells that were lost are rung again), and say when it is looked at next:
here, where nobody can change what that depends on. What needs more than Redis comes back as actions: `end`, `skip`, `expire`,
`rescue call attempt`, `deliver`, `parent`; if they fail, the next look finds them again. A turn that is GONE keeps its place.

KEYS   turn budget trace
ARGV   sid tid rering_ms:n failing_ms:n unserved_ms:n grace_ms:n longest_lease_ms:n
REPLY  LOOK fence:n actions:rows | ENDED | GONE
]]
-- @include lib/event
-- @include lib/ring
-- @include lib/lost
-- @include lib/clock
-- @include lib/index
if redis.call('EXISTS', turn) == 0 then return {'GONE'} end
mend_clock()
local held = redis.call('HMGET', turn, 'state', 'awaits', 'owner', 'lease_until', 'rung_at', 'fence', 'cancel',
  'cancel_at', 'step', 'n_calls', 'opening_until', 'holds', 'parent')
local state, fence, actions, after = held[1], tonumber(held[6] or 0), {}, rering_ms
local function soon(at) if at - now < after then after = math.max(at - now, 50) end end
-- @include lib/sweep_parks
-- @include lib/sweep_final

if state == 'queued' then after = seldom_ms()
elseif state == 'parked' then
  after = seldom_ms()
  expire_parks()
  -- Memory and the context pack are waited for no longer because their results come from outside.
  if held[9] == '0' and now >= tonumber(held[11]) then actions[#actions + 1] = 'skip' end
  if held[9] == '0' then soon(tonumber(held[11]) + 1) end
elseif state == 'active' then
  local deadline = tonumber(redis.call('HGET', budget, 'deadline'))
  local owned = held[3] ~= '' and tonumber(held[4] or 0) > now
  -- A live owner sees its own deadline and ends the turn; 2 s later the turn is taken from it.
  if now >= deadline and (not owned or now > deadline + 2000) then actions[1] = 'end' end
  if held[7] == '1' then
    local over_at = tonumber(held[8] or now) + grace_ms
    if now >= over_at then actions[1] = 'end' else soon(over_at + 1) end
  end
  soon(now < deadline and deadline or deadline + 2001)
  if #actions == 0 and held[2] == 'coordinator' then
    -- A hold that is to cancel the turn does, also while it thinks.
    if held[12] and held[12] ~= '' then expire_parks() end
    if owned then
      soon(tonumber(held[4]) + 1)
    elseif held[3] ~= '' or bell_is_lost('turns', held[5], rering_ms) then
      if held[3] ~= '' then note_lost(turn, held[3]) end
      redis.call('HSET', turn, 'owner', '', 'rung_at', now)
      ring_anew('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
    else -- it waits in a long queue: look again after its own age once more
      after = math.max(after, math.min(now - tonumber(held[5] or now), rering_ms * 12))
      soon(deadline)
    end
  elseif #actions == 0 and held[2] == 'calls' then
    expire_parks()
    if held[9] == '0' and now >= tonumber(held[11]) then actions[1] = 'skip' end
    if held[9] == '0' then soon(tonumber(held[11]) + 1) end
    for i = 0, tonumber(held[10]) - 1 do
      local call = 'c' .. held[9] .. '-' .. i
      local known = read_call(call)
      local attempt = tonumber(known[4])
      if known[1] == 'dispatched' and bell_is_lost(known[5], known[2], rering_ms) then
        redis.call('HSET', trace, call .. ':rung_at', now)
        ring_anew(known[5], sid, tid, call .. '.' .. attempt, {sid, tid, call, attempt}, tid, known[6])
      elseif known[1] == 'running' then
        soon(known[3] + 1)
        if known[3] <= now then actions[#actions + 1] = 'rescue ' .. call .. ' ' .. attempt end
      end
    end
  end
else
  if sweep_final() then look_no_more(sid, tid) return {'ENDED'} end
end
if #actions > 0 then soon(now + rering_ms) end
if held[13] and held[13] ~= '' and (state == 'queued' or state == 'active' or state == 'parked') then
  actions[#actions + 1] = 'parent ' .. held[13]
  soon(now + rering_ms * 6)
end
look_next(sid, tid, after)
return {'LOOK', fence, table.concat(actions, ',')}
