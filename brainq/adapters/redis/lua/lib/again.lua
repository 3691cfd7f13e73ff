-- End the owner's advance, and ring for the turn to be advanced once more.
-- @include lib/ring
-- @include lib/owner_gone
local function ring_again(turn_key, sid, tid, fence)
  go_on(turn_key, 'owner', '', 'rung_at', now, 'aux_open', '')
  ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
end
