--[[
Ask for a turn to be cancelled. One that still waits for its session ends at once; a live one is marked, and
its coordinator rung: the mark outlives every process. `queued_only` is 1 to touch no live turn.

KEYS   session waiting turn
ARGV   sid tid reason first_step channel queued_only:b keep_session_ms:n
REPLY  CANCELLED | REQUESTED | LIVE | ENDED state:TurnState | GONE
]]
-- @include lib/cancel
-- @include lib/room
local state = redis.call('HGET', turn, 'state')
if not state then return {'GONE'} end
if state == 'queued' then
  cancel_queued(waiting, turn, sid, tid, reason, first_step)
  -- It was the last one that a paused session kept, or one that stands in line for room.
  if redis.call('EXISTS', waiting) == 0 and (redis.call('HGET', session, 'live') or '') == '' then
    redis.call('PEXPIRE', session, keep_session_ms)
    redis.call('ZREM', line_of(tenant_of(sid)), sid)
  end
  return {'CANCELLED'}
end
if state ~= 'active' and state ~= 'parked' then return {'ENDED', state} end
if queued_only == '1' then return {'LIVE'} end
cancel_live(turn, sid, tid, reason, channel)
return {'REQUESTED'}
