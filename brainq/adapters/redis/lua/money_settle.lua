--[[
Replace the amount that money_take reserved for a call by its cost, `usd`. The ticket stays, without money, so that this
happens once.

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
  local counter = hold[1]
  if redis.call('EXISTS', counter) == 1 then redis.call('HINCRBYFLOAT', counter, 'spent', tonumber(usd) - taken.usd) end
end
return {'SETTLED'}
