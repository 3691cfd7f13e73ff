--[[
Open the wave with which a turn begins, once: memory and the context pack, as the calls of step 0. They cost no tool
call. The turn waits for them for at most `opening_ms`.

KEYS   turn budget trace history events guard
ARGV   sid tid owner fence:n calls opening_ms:n
REPLY  OPENED | ALREADY | LOST
]]
-- @include lib/owner_fence
-- @include lib/plan
-- @include lib/waves
-- @include lib/owner_gone
local t = read(turn, {'state', 'owner', 'fence', 'opening_until', 'step'})
if not is_owner(t, owner, fence) then return {'LOST'} end
if t.opening_until or t.step ~= '0' then return {'ALREADY'} end
local plan = cjson.decode(calls)
local waves, published = plan_calls(plan)
go_on(turn, 'opening_until', now + opening_ms, 'opening_ms', opening_ms, 'n_calls', #plan, 'wave', 1, 'waves', waves,
  'awaits', 'calls', 'owner', '')
look_within(sid, tid, opening_ms + 1)
emit(events, 'turn.opening', {plan = published})
open_waves()
return {'OPENED'}
