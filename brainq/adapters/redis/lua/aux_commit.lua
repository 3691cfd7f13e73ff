--[[
Commit a reflection. Its note enters the history (unless it is empty), its usage is charged, and the coordinator is rung
for the step itself.

KEYS   turn budget history events spends
ARGV   sid tid owner fence:n kind item input:n output:n cache_read:n cache_creation:n cost:f? spend data
REPLY  COMMITTED | LOST
]]
-- @include lib/history
-- @include lib/owner_fence
-- @include lib/event
-- @include lib/budget
-- @include lib/money
-- @include lib/again
local t = read(turn, {'state', 'owner', 'fence', 'money'})
if not is_owner(t, owner, fence) then return {'LOST'} end
if item ~= '' then redis.call('RPUSH', history, item) end
if spend ~= '' then
  add_usage(budget, input, output, cache_read, cache_creation, cost)
  redis.call('RPUSH', spends, spend)
end
if t.money then settle_money(turn, t.money, charged_usd) end
emit(events, kind, data)
ring_again(turn, sid, tid, fence)
return {'COMMITTED'}
