-- Parked calls, and holds, whose time is up. Uses the names of turn_sweep.
local function expire_parks()
  local due, denies = false, false
  if held[12] and held[12] ~= '' then
    for _, hold in pairs(cjson.decode(held[12])) do
      if hold.ends > now then
        soon(hold.ends + 1)
      else
        due = due or hold.policy == 'cancel'
        denies = denies or hold.policy == 'deny'
      end
    end
  end
  for i = 0, tonumber(held[10] or 0) - 1 do
    local call = 'c' .. held[9] .. '-' .. i
    local known = redis.call('HMGET', trace, call .. ':status', call .. ':park_ends', call .. ':park')
    if known[1] == 'parked' then
      -- The hold that denies may be a later one than those that the call was parked by.
      if tonumber(known[2]) <= now or (denies and known[3] == 'hold') then due = true else soon(tonumber(known[2]) + 1) end
    end
  end
  if due then actions[#actions + 1] = 'expire' end
end
