--[[
Take the worst case of a model call after its turn's end (a judge, an extraction) out of budgets: it is counted as spent at once,
for nobody would tell of a worker that dies over it. `ticket` is a hash of the call's own: taken twice, it is taken once.

KEYS   ticket
ARGV   money keep_ms:n
REPLY  GO | MONEY why:wait/short window start:n wanted expected in_flight:n is_new:b
]]
-- @include lib/money
if redis.call('EXISTS', ticket) == 1 then return {'GO'} end
local refused = reserve_money(ticket, money)
if refused then return {'MONEY', unpack(refused)} end
local held = cjson.decode(redis.call('HGET', ticket, 'money'))
for _, hold in ipairs(held.holds) do
  for field, change in pairs({held = -hold[2], spent = held.usd}) do redis.call('HINCRBYFLOAT', hold[1], field, change) end
  redis.call('HINCRBY', hold[1], 'n', -1)
  if held.blind then redis.call('HINCRBY', hold[1], 'blind', -1) end
end
redis.call('PEXPIRE', ticket, keep_ms)
return {'GO'}
