--[[
Claim units of one kind (steps, tool_calls, reflections), never more than its maximum. Ids are claimed in order, one
unit each; an id that was claimed before costs nothing. The reply has one word for each id. The deadline of a parked
turn does not run. A budget that belongs to no turn has an empty `turn`.

KEYS   turn budget
ARGV   kind ids...
REPLY  DONE claims:CLAIMED/ALREADY/SPENT... | EXPIRED
]]
-- @include lib/now
-- @include lib/budget
-- @include lib/fields
local deadline = redis.call('HGET', budget, 'deadline')
local t = read(turn, {'state', 'parked_at'})
if deadline and tonumber(deadline) <= (t.state == 'parked' and tonumber(t.parked_at) or now) then return {'EXPIRED'} end
return {'DONE', unpack(claim_units(budget, kind, ids))}
