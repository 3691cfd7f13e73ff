--[[
Record that the step that sends the result is done. The result is published unless it has been, and the chain continues
as in finalize_settle.

KEYS   turn result events
ARGV   sid tid fence:n step next_step owner lease_ms:n body data
REPLY  GO fence:n tries:n revision:n sent:b | NEXT | LOST
]]
-- @include lib/chain
-- @include lib/next_step
-- @include lib/publish
local t = read(turn, {'fin_fence', 'fin_owner', 'fin_step', 'revision', 'state', 'ending'})
if not (has_gone_on(t, fence, owner) and t.fin_step == next_step) then
  if not holds_step(t, fence) or t.fin_step ~= step then return {'LOST'} end
  if t.state == 'closing' then publish(turn, result, events, t.ending, body, data) end
  if not take_next_step(true) then return {'NEXT'} end
end
return {'GO', fence + 1, 1, t.revision or '0', '1'}
