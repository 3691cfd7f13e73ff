-- How often a turn lost whoever worked on it since it last went on. `lost_owner` is the last one: should it still live, it
-- takes that back (turn_release).
local function note_lost(turn_key, owner)
  if redis.call('HINCRBY', turn_key, 'lost_attempts', 1) == 1 then redis.call('HDEL', turn_key, 'died_among') end
  redis.call('HSET', turn_key, 'lost_owner', owner)
end

-- It goes on: with these fields and values set, too.
local function go_on(turn_key, ...)
  redis.call('HSET', turn_key, 'lost_attempts', 0, 'died_alone', 0, 'lost_owner', '', ...)
end
