--[[
Request the cancellation of a turn. A turn that waits for its session ends at once. A live turn is marked, and its
coordinator is rung; the mark outlives every process. `queued_only` is 1 to leave a live turn unchanged.

KEYS   session waiting turn
ARGV   sid tid reason first_step channel queued_only:b keep_session_ms:n
REPLY  CANCELLED | REQUESTED | LIVE | ENDED state:TurnState | GONE
]]
-- @include lib/cancel
-- @include lib/let_go
local state = redis.call('HGET', turn, 'state')
if not state then return {'GONE'} end
if state == 'queued' then
  cancel_queued(waiting, turn, sid, tid, reason, first_step)
  let_session_go(session, waiting, sid, keep_session_ms)
  return {'CANCELLED'}
end
if state ~= 'active' and state ~= 'parked' then return {'ENDED', state} end
if queued_only == '1' then return {'LIVE'} end
cancel_live(turn, sid, tid, reason, channel)
return {'REQUESTED'}
