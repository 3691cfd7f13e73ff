--[[
Set the total that SQL has granted to a window's counter. A counter that does not exist is new, or Redis lost it: it
begins with `spent`, which is at least the true amount. A counter from before a restart or a failover may lack the last
spending, so `spent` and the held amount are raised to `spent` together. `is_full` means that there is no more for now.
`returned` counts as spent, because another cell has it (money_return). Granting the same total twice changes nothing.

KEYS   counter
ARGV   granted:f? spent:f? is_full:b returned:f? keep_ms:n
REPLY  GRANTED
]]
-- @include lib/fields
-- @include lib/run
local c, run = read(counter, {'granted', 'spent', 'held', 'run', 'returned'}), redis_run()
if c.run ~= run then
  local least = tonumber(spent) - tonumber(c.held or 0)
  redis.call('HSET', counter, 'spent', string.format('%.12g', math.max(tonumber(c.spent or 0), least)), 'run', run,
    'returned', string.format('%.12g', math.max(tonumber(c.returned or 0), tonumber(returned))))
end
redis.call('HSET', counter, 'granted', string.format('%.12g', math.max(tonumber(c.granted or 0), tonumber(granted))), 'full', is_full)
redis.call('PEXPIRE', counter, keep_ms)
return {'GRANTED'}
