--[[
Lift a stop. Once nothing is stopped, claims no longer read the stops.

KEYS   stopped capacity
ARGV   field
REPLY  LIFTED | ABSENT
]]
-- @include lib/ring
local was = redis.call('HDEL', stopped, field)
if redis.call('EXISTS', stopped) == 0 then
  redis.call('HDEL', BELLS_KEY, 'stops')
  redis.call('HDEL', capacity, 'stops')
end
return {was == 1 and 'LIFTED' or 'ABSENT'}
