-- Check parked calls and holds whose time is up. Uses the names of turn_sweep.
-- @include lib/read_call
-- @include lib/stops
local function expire_parks()
  local due, denies = false, false
  if t.holds and t.holds ~= '' then
    for _, hold in pairs(cjson.decode(t.holds)) do
      if hold.ends > now then
        soon(hold.ends + 1)
      else
        due = due or hold.policy == 'cancel'
        denies = denies or hold.policy == 'deny'
      end
    end
  end
  for i = 0, tonumber(t.n_calls or 0) - 1 do
    local call = 'c' .. t.step .. '-' .. i
    local c = read_call(call, {'status', 'park_ends', 'park', 'stop'})
    if c.status == 'parked' then
      -- The hold that denies may be later than the hold that parked the call.
      if tonumber(c.park_ends) <= now or (denies and c.park == 'hold') or is_lifted(c) then due = true
      else soon(math.min(tonumber(c.park_ends) + 1, c.stop and now + STOP_LOOK_MS or math.huge)) end
    end
  end
  if due then actions[#actions + 1] = 'expire' end
end

-- Stop waiting for memory and the context pack once their time is up, even if their results come from outside.
local function look_at_opening()
  if t.step == '0' and now >= tonumber(t.opening_until) then actions[#actions + 1] = 'skip' end
  if t.step == '0' then soon(tonumber(t.opening_until) + 1) end
end
