--[[
Record that a finalizer step is done or given up, and continue the chain with `next_step`. Its owner takes that step at
once (`GO`, also for a repeated call), unless `owner` is empty, or the step comes after the result while other turns
wait for theirs. Then it is rung for.

KEYS   turn
ARGV   sid tid fence:n step next_step owner lease_ms:n
REPLY  GO fence:n tries:n revision:n sent:b | NEXT | LOST
]]
-- @include lib/chain
-- @include lib/next_step
local t = read(turn, {'fin_fence', 'fin_owner', 'fin_step', 'result_at', 'revision'})
if not (has_gone_on(t, fence, owner) and t.fin_step == next_step) then
  if not holds_step(t, fence) or t.fin_step ~= step then return {'LOST'} end
  if not take_next_step(t.result_at) then return {'NEXT'} end
end
return {'GO', fence + 1, 1, t.revision or '0', t.result_at and '1' or '0'}
