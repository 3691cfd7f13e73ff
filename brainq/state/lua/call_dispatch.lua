--[[
Put a call that holds its lanes into its effect's queue. SETTLED: it never started and never will, so whoever
asked leaves its lanes; those of a call that did start are for its worker to leave. HELD: a hold stands, and the call
was parked or denied: its lanes are to lapse, not to be left, because it may want them again at any moment.

KEYS   turn budget trace events history guard
ARGV   sid tid call
REPLY  DISPATCHED | ALREADY status:TraceStatus | SETTLED status:TraceStatus/gone | HELD wants:words
]]
-- @include lib/waves
local held = redis.call('HMGET', trace, call .. ':status', call .. ':effect', call .. ':attempt', call .. ':started_at')
-- One that waits has its lanes from here on, also when an earlier attempt had started.
if held[4] and held[1] ~= 'waiting' then return {'ALREADY', held[1]} end
if held[1] == 'parked' then return {'HELD', ''} end
local open = redis.call('HMGET', turn, 'state', 'cancel')
if open[1] ~= 'active' or not held[1] or SETTLED[held[1]] then
  return {'SETTLED', held[1] or 'gone'}
end
if held[1] ~= 'waiting' or open[2] == '1' then return {'ALREADY', held[1]} end
if hold_word() then return {'HELD', table.concat(hold_back(call), ' ')} end
dispatch(call, held[2], tonumber(held[3]))
return {'DISPATCHED'}
