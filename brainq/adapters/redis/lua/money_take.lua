--[[
Reserve the worst case of a model call after its turn's end (a judge, an extraction). It counts as spent at once, because no
sweeper would notice a worker that dies during the call. `ticket` is a hash of the call: reserving twice reserves once.

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
  local counter, reserved = unpack(hold)
  redis.call('HINCRBYFLOAT', counter, 'held', -reserved)
  redis.call('HINCRBYFLOAT', counter, 'spent', held.usd)
  redis.call('HINCRBY', counter, 'n', -1)
  if held.blind then redis.call('HINCRBY', counter, 'blind', -1) end
end
redis.call('PEXPIRE', ticket, keep_ms)
return {'GO'}
