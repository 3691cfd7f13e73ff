--[[
Look at one turn and heal what a script alone can heal: ring again for bells that were lost. What needs more
than Redis comes back as actions: `end`, `skip`, `rescue call attempt`, `lane call`, `deliver`.

KEYS   turn budget trace
ARGV   sid tid rering_ms:n failing_ms:n unserved_ms:n
REPLY  LOOK after_ms fence actions | ENDED | GONE
]]
-- @include lib/event
-- @include lib/ring
local held = redis.call('HMGET', turn, 'state', 'awaits', 'owner', 'lease_until', 'rung_at', 'fence', 'cancel',
  'cancel_at', 'step', 'n_calls', 'opening_until')
local state, fence, actions, after = held[1], tonumber(held[6] or 0), {}, rering_ms
if not state then return {'GONE'} end
local function soon(at) if at - now < after then after = math.max(at - now, 50) end end

if state == 'queued' then after = rering_ms * 6
elseif state == 'active' or state == 'parked' then
  local deadline = tonumber(redis.call('HGET', budget, 'deadline'))
  local owned = held[3] ~= '' and tonumber(held[4] or 0) > now
  -- A live owner sees its own deadline and ends the turn; 2 s later the turn is taken from it.
  if now >= deadline and (not owned or now > deadline + 2000) then actions[1] = 'end' end
  if held[7] == '1' and now - tonumber(held[8] or now) >= rering_ms then actions[1] = 'end' end
  soon(now < deadline and deadline or deadline + 2001)
  if #actions == 0 and held[2] == 'coordinator' then
    if owned then
      soon(tonumber(held[4]) + 1)
    elseif held[3] ~= '' or bell_is_lost('turns', held[5], rering_ms) then
      redis.call('HSET', turn, 'owner', '', 'rung_at', now)
      ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
    else -- it waits in a long queue: look again after its own age once more
      after = math.max(after, math.min(now - tonumber(held[5] or now), rering_ms * 12))
      soon(deadline)
    end
  elseif #actions == 0 and held[2] == 'calls' then
    if held[9] == '0' and now >= tonumber(held[11]) then actions[1] = 'skip' end
    if held[9] == '0' then soon(tonumber(held[11]) + 1) end
    for i = 0, tonumber(held[10]) - 1 do
      local call = 'c' .. held[9] .. '-' .. i
      local known = redis.call('HMGET', trace, call .. ':status', call .. ':rung_at', call .. ':lease',
        call .. ':attempt', call .. ':effect', call .. ':waiting_at')
      local attempt = tonumber(known[4])
      if known[1] == 'dispatched' and bell_is_lost(known[5], known[2], rering_ms) then
        redis.call('HSET', trace, call .. ':rung_at', now)
        ring(known[5], sid, tid, call .. '.' .. attempt, {sid, tid, call, attempt}, tid)
      elseif known[1] == 'running' then
        soon(tonumber(known[3]) + 1)
        if tonumber(known[3]) <= now then actions[#actions + 1] = 'rescue ' .. call .. ' ' .. attempt end
      elseif known[1] == 'waiting' and now - tonumber(known[6] or 0) >= rering_ms then
        actions[#actions + 1] = 'lane ' .. call
      end
    end
  end
else
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
    if #actions == 0 then return {'ENDED'} end
  elseif fin[2] ~= '' and tonumber(fin[3] or 0) > now then
    soon(tonumber(fin[3]) + 1)
  else
    local retry_at, lapsed = tonumber(fin[4] or 0) or 0, fin[2] ~= ''
    local queue = state == 'closing' and 'finalize' or 'finalize_later'
    if retry_at > now then
      soon(retry_at)
    elseif lapsed or retry_at > tonumber(fin[5] or 0) or bell_is_lost(queue, fin[5], rering_ms) then
      redis.call('HSET', turn, 'fin_owner', '', 'fin_rung', now)
      ring(queue, sid, tid, 'final.' .. fin[1] .. '.' .. fin[8], {sid, tid, fin[1]}, tid)
    end
  end
end
return {'LOOK', after, fence, table.concat(actions, ',')}
