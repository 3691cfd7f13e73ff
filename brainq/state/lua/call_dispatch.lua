--[[
Put a call that holds its lanes into its effect's queue. SETTLED: it never started and never will, so whoever
asked leaves its lanes; those of a call that did start are for its worker to leave.

KEYS   turn trace events history guard
ARGV   sid tid call
REPLY  DISPATCHED | ALREADY status | SETTLED status
]]
-- @include lib/waves
local held = redis.call('HMGET', trace, call .. ':status', call .. ':effect', call .. ':attempt', call .. ':started_at')
if held[4] then return {'ALREADY', held[1]} end
if redis.call('HGET', turn, 'state') ~= 'active' or not held[1] or SETTLED[held[1]] then
  return {'SETTLED', held[1] or 'gone'}
end
if held[1] ~= 'waiting' then return {'ALREADY', held[1]} end
dispatch(call, held[2], tonumber(held[3]))
return {'DISPATCHED'}
