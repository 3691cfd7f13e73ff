--[[
Take the unused rest out of a window's counter, because another cell may want it. `returned` is the total that was ever
taken out; it counts as spent here. A rest below `least` stays. BUSY means that a call is in flight, which may be billed
more than it has reserved.

KEYS   counter
ARGV   least:f?
REPLY  RETURNED returned | BUSY
]]
-- @include lib/fields
local c = read(counter, {'granted', 'spent', 'held', 'n', 'returned'})
if tonumber(c.n or 0) > 0 then return {'BUSY'} end
local unused = tonumber(c.granted or 0) - tonumber(c.spent or 0) - tonumber(c.held or 0)
if unused < tonumber(least) then return {'RETURNED', c.returned or '0'} end
redis.call('HINCRBYFLOAT', counter, 'spent', unused)
return {'RETURNED', redis.call('HINCRBYFLOAT', counter, 'returned', unused)}
