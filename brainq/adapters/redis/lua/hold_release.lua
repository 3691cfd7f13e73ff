--[[
Release a hold of a turn. The calls that waited for it continue if no other hold is in force.

KEYS   turn budget trace history events guard
ARGV   sid tid hold
REPLY  RELEASED | ABSENT | GONE
]]
-- @include lib/waves
local held = redis.call('HMGET', turn, 'state', 'holds', 'n_calls', 'absorbed', 'step')
if not held[1] then return {'GONE'} end
-- A turn that is over has published its last event.
if held[1] ~= 'queued' and held[1] ~= 'active' and held[1] ~= 'parked' then return {'ABSENT'} end
local holds = held[2] and held[2] ~= '' and cjson.decode(held[2]) or {}
if not holds[hold] then return {'ABSENT'} end
holds[hold] = nil
redis.call('HSET', turn, 'holds', next(holds) and cjson.encode(holds) or '')
emit(events, 'hold.released', {hold = hold})
local awaits_calls = (held[1] == 'active' or held[1] == 'parked') and tonumber(held[3] or 0) > 0 and held[4] ~= held[5]
if awaits_calls then open_waves() end
return {'RELEASED'}
