--[[
Park a turn whose next model call a budget does not allow. No thread waits with it, its capacity is free for others, and
its deadline does not run. It continues when the budget's next window begins, in `after_ms`, or when the budget is
raised (money_resume). In the queue `parked_line` tenants take turns: one turn of each tenant, then one more of each.
`lost` is the cost of earlier attempts at the step.

KEYS   parked_line turn budget events spends
ARGV   sid tid owner fence:n after_ms:n name lost
REPLY  PARKED | LOST
]]
-- @include lib/event
-- @include lib/owner_fence
-- @include lib/index
-- @include lib/admit_turns
-- @include lib/budget
-- @include lib/money
-- @include lib/tenant
local ROUND = 1e6
local t = read(turn, {'state', 'owner', 'fence', 'thinking', 'brain', 'money', 'line_place'})
if not is_owner(t, owner, fence) then return {'LOST'} end
charge_spends(budget, spends, lost)
if t.money then settle_money(turn, t.money, charged_usd) end
local place = t.line_place
if not place then
  local tenant = tenant_of(sid)
  local seen = redis.call('HINCRBY', parked_line .. ':rounds', tenant, 1)
  place = seen * ROUND + redis.call('HINCRBY', parked_line .. ':rounds', '', 1) % ROUND
end
redis.call('ZADD', parked_line, place, sid .. ' ' .. tid)
for _, key in ipairs({parked_line, parked_line .. ':rounds'}) do redis.call('PEXPIRE', key, after_ms + 86400000) end
redis.call('HSET', turn, 'state', 'parked', 'awaits', 'people', 'parked_at', now, 'owner', '', 'thinking', '0', 'aux_open', '',
  'line', parked_line, 'line_place', place, 'waits_for', name,
  'resumes_at', now + after_ms, 'resumes_ms', after_ms)
emit(events, 'notice', {waits_for = name, wait_ms = after_ms})
emit(events, 'turn.parked', {awaits = 'people'})
look_within(sid, tid, after_ms + redis.call('ZRANK', parked_line, sid .. ' ' .. tid))
if remove_live(sid, tid, t.brain) then admit_turns(sid) end
return {'PARKED'}
