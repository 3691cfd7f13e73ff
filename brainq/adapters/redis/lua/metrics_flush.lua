--[[
Add the counts of a process to the shared metrics. `number` grows by one with each batch of a process, so that a batch
is added once. A series that does not exist yet is left out once there are `most` series; the series `dropped` counts
those that were left out.

KEYS   flushed metrics
ARGV   number:n dropped keep_ms:n remember_ms:n most:n deltas...
REPLY  ADDED | ALREADY
]]
if number <= tonumber(redis.call('GET', flushed) or 0) then return {'ALREADY'} end
local free, left_out = most - redis.call('HLEN', metrics), 0
for i = 1, #deltas, 2 do
  local fits = free * 2 > #deltas or redis.call('HEXISTS', metrics, deltas[i]) == 1
  if not fits and free > 0 then fits, free = true, free - 1 end
  if fits then redis.call('HINCRBYFLOAT', metrics, deltas[i], deltas[i + 1]) else left_out = left_out + 1 end
end
if left_out > 0 then redis.call('HINCRBYFLOAT', metrics, dropped, left_out) end
redis.call('PEXPIRE', metrics, keep_ms)
redis.call('SET', flushed, number, 'PX', remember_ms)
return {'ADDED'}
