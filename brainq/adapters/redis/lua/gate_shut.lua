--[[
Shut a turn's write gate. Results no longer enter the turn, although it has not ended yet.

KEYS   turn
ARGV   by
REPLY  SHUT | ALREADY | GONE
]]
local held = redis.call('HMGET', turn, 'state', 'gate')
if not held[1] then return {'GONE'} end
if (held[1] ~= 'active' and held[1] ~= 'parked') or held[2] == 'shut' then return {'ALREADY'} end
redis.call('HSET', turn, 'gate', 'shut', 'gate_by', by)
return {'SHUT'}
