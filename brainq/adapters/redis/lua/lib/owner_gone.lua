-- Count a lost owner of a turn since the turn last advanced. `lost_owner` is the last one. If it is still alive, it
-- takes this back (turn_release).
local function note_lost(turn_key, owner)
  if redis.call('HINCRBY', turn_key, 'lost_attempts', 1) == 1 then redis.call('HDEL', turn_key, 'died_among') end
  redis.call('HSET', turn_key, 'lost_owner', owner)
end

-- Record that the turn advances, and set these further fields and values.
local function go_on(turn_key, ...)
  redis.call('HSET', turn_key, 'lost_attempts', 0, 'died_alone', 0, 'lost_owner', '', ...)
end
