-- The fence: true only for the owner of the newest claim of a turn that is still open.
local function holds(turn_key, who, number)
  local held = redis.call('HMGET', turn_key, 'state', 'owner', 'fence')
  return held[1] == 'active' and held[2] == who and tonumber(held[3]) == number
end
