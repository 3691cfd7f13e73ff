--[[
Open the wave a turn begins with, once: memory and the context pack, as the calls of step 0. They cost no tool call,
and the turn waits for them until `opening_ms` have passed at most.

KEYS   turn budget trace history events guard
ARGV   sid tid owner fence:n calls opening_ms:n
REPLY  OPENED | ALREADY | LOST
]]
-- @include lib/holds
-- @include lib/plan
-- @include lib/waves
-- @include lib/lost
if not holds(turn, owner, fence) then return {'LOST'} end
local held = redis.call('HMGET', turn, 'opening_until', 'step')
if held[1] or held[2] ~= '0' then return {'ALREADY'} end
local plan = cjson.decode(calls)
local waves, asked = plan_calls(plan)
redis.call('HSET', turn, 'opening_until', now + opening_ms, 'n_calls', #plan, 'wave', 1, 'waves', waves,
  'awaits', 'calls', 'owner', '')
look_within(sid, tid, opening_ms + 1)
goes_on(turn)
emit(turn, events, 'turn.opening', {plan = asked})
open_waves()
return {'OPENED'}
