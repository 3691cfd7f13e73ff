--[[
Take a dispatched call to run it. A call of a turn that is closed, cancelled or past its deadline never starts, and one
that changes something not while a hold stands: it leaves its lanes, and is parked or denied. A worker that
does not serve the call's effect (`serves` names those it does) is not to run it, whoever sent it the doorbell.

KEYS   turn budget trace history events guard
ARGV   sid tid owner call attempt:n lease_ms:n serves:words
REPLY  GO spec cap_ms:n remaining_ms:n effect:Effect tool step:n edited:b | DROP
       why:TraceStatus/gone/stale/unserved/closed/expired/held
]]
-- @include lib/waves
local held = redis.call('HMGET', trace, call .. ':status', call .. ':attempt', call .. ':effect',
  call .. ':spec', call .. ':cap_ms', call .. ':tool', call .. ':rung_at', call .. ':edited')
if held[1] ~= 'dispatched' then return {'DROP', held[1] or 'gone'} end
if tonumber(held[2]) ~= attempt then return {'DROP', 'stale'} end
if not (' ' .. serves .. ' '):find(' ' .. held[3] .. ' ', 1, true) then return {'DROP', 'unserved'} end
mark_claimed(held[3], held[7])
local open = redis.call('HMGET', turn, 'state', 'cancel', 'step')
if open[1] ~= 'active' or open[2] == '1' then return {'DROP', 'closed'} end
local remaining_ms = tonumber(redis.call('HGET', budget, 'deadline')) - now
if remaining_ms <= 0 then return {'DROP', 'expired'} end
if held[3] ~= 'read_only' and hold_word() then
  hold_back(call)
  return {'DROP', 'held'}
end
redis.call('HSET', trace, call .. ':status', 'running', call .. ':owner', owner, call .. ':lease', now + lease_ms,
  call .. ':started_at', now)
emit(turn, events, 'call.running', {call = call, tool = held[6], attempt = attempt})
return {'GO', held[4], tonumber(held[5]), remaining_ms, held[3], held[6], tonumber(open[3]), held[8] or '0'}
