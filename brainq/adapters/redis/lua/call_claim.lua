--[[
Claim a dispatched call in order to run it. A call whose turn is closed, cancelled or past its deadline never starts. A
write does not start while a hold is in force, and no call starts that operators have stopped: it leaves its lanes, and
is parked or denied. A worker that does not serve the call's effect (`serves` names those it does), or that may not
continue its turn (lib/refusal), must not run the call, whoever rang. For a write, the Redis from which it was claimed
is recorded (call_unstarted); which one that is, is read once in 10 s. The call's place in the list goes to the next
waiting call, whatever the reply. A repeated claim of the owner gets the same reply.

KEYS   turn budget trace history events guard run
ARGV   sid tid owner call attempt:n lease_ms:n serves:words brains:words
REPLY  GO spec cap_ms:n remaining_ms:n effect:Effect tool step:n edited:b brain waited_ms:n lane_waited_ms:n | DROP
       why:TraceStatus/gone/stale/unserved/closed/expired/held/stopped/no_brain/other_build/other_format
]]
-- @include lib/waves
-- @include lib/refusal
-- @include lib/pass_on_call
-- @include lib/claim_call
local c = read_call(call, {'status', 'attempt', 'effect', 'spec', 'cap_ms', 'tool', 'rung_at', 'edited', 'waits_at',
  'dispatched_at', 'bell', 'owner', 'passed'})

local function claim()
  if c.status == 'running' and c.owner == owner and tonumber(c.attempt) == attempt then
    return {'GO', call_grant(c, read(turn, {'step', 'brain'}), math.max(0, time_left_ms()))}
  end
  if c.status ~= 'dispatched' then return {'DROP', c.status or 'gone'} end
  if tonumber(c.attempt) ~= attempt then return {'DROP', 'stale'} end
  if not (' ' .. serves .. ' '):find(' ' .. c.effect .. ' ', 1, true) then return {'DROP', 'unserved'} end
  local t = read(turn, {'state', 'cancel', 'step', 'holds', 'brain', 'format', 'pin'})
  local refused = refusal(brains, t, turn)
  if refused then
    pass_on_call(refused, t, c)
    return {'DROP', refused}
  end
  -- A copy of its bell was answered, and the call no longer waits. This does not show that the list has a free place.
  if not leave_calls(trace, sid, tid, call, c) then mark_claimed(place_of(c.effect, c.passed, c.rung_at), c.rung_at) end
  if t.state ~= 'active' or t.cancel == '1' then return {'DROP', 'closed'} end
  local remaining_ms = time_left_ms()
  if remaining_ms <= 0 then return {'DROP', 'expired'} end
  local stop = are_stops() and stop_of_call(c.tool, t.brain, brains:match('^%S*'))
  if stop then
    note_stopped(call, stop)
    hold_back(call)
    return {'DROP', 'stopped'}
  end
  if c.effect ~= 'read_only' and hold_word(t.holds) then
    hold_back(call)
    return {'DROP', 'held'}
  end
  begin_attempt(call, attempt, c, owner, lease_ms)
  return {'GO', call_grant(c, t, remaining_ms)}
end

local reply = claim()
fill_calls(c.effect or serves)
return reply
