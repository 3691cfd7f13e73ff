--[[
Settle what money_take took: the call has cost `usd`. Its ticket stays, without money, so that it is settled once.

KEYS   ticket
ARGV   usd:f?
REPLY  SETTLED | ALREADY
]]
local held = redis.call('HGET', ticket, 'money')
if not held then return {'ALREADY'} end
local taken = cjson.decode(held)
redis.call('HDEL', ticket, 'money')
redis.call('HSET', ticket, 'settled', 1)
for _, hold in ipairs(taken.holds) do
  if redis.call('EXISTS', hold[1]) == 1 then redis.call('HINCRBYFLOAT', hold[1], 'spent', tonumber(usd) - taken.usd) end
end
return {'SETTLED'}
