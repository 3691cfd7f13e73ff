--[[
Let a window's counter have what SQL has granted it in all. A counter that is not there is new, or Redis lost it: it begins
with `spent`, which is no less than what was spent. One that another Redis left, before a restart or a failover, may lack what was
spent last: with what is held it comes to `spent`, too. `is_full`: there is no more for now. `returned`, which counts as spent, is another cell's (money_return). Granting the same twice changes nothing.

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
