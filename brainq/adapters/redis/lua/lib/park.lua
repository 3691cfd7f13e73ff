-- Parking: what keeps a call from continuing, and a turn whose open calls all wait for somebody outside. Such a turn is
-- parked. Its deadline does not run, and its capacity is free for others. Uses the script's names: turn budget trace
-- events, and sid tid.
-- @include lib/event
-- @include lib/resume
-- @include lib/admit_turns

-- Return whether an approval lets the call continue: 'go', 'wait', 'denied' or 'expired'. `c` has its ask and ask_ends.
local function ask_word(call, c)
  if not c.ask or c.ask == 'approved' then return 'go' end
  if c.ask ~= 'pending' then return c.ask end
  if now < tonumber(c.ask_ends) then return 'wait' end
  redis.call('HSET', trace, call .. ':ask', 'expired')
  emit(events, 'approval.decided', {call = call, decision = 'expired'})
  return 'expired'
end

-- Park a call. `c` has its status and the reason why it was parked. For a call of a client's tool, the event also has
-- the tool and the arguments.
-- @lazy
local function park(call, c, why, ends)
  redis.call('HSET', trace, call .. ':status', 'parked', call .. ':park', why, call .. ':park_ends', ends)
  look_within(sid, tid, tonumber(ends) - now + 1)
  if c.status ~= 'parked' or c.park ~= why then
    local is_client = why == 'client'
    emit(events, 'call.parked', {call = call, why = why, tool = is_client and c.tool or nil,
      arguments = is_client and c.client_args or nil})
  end
  c.status, c.park = 'parked', why
end

-- Park a call of the client's tool. It is published to those who follow the turn, and starts now. `c` also has
-- client_ms, client_args and tool. Its token is not secret, because its result needs the right to steer the turn, and
-- no tool can return it.
-- @lazy
local function park_for_client(call, c)
  local ends = now + tonumber(c.client_ms)
  redis.call('HSET', trace, call .. ':token', 'client ' .. call, call .. ':dispatched_at', now, call .. ':started_at', now)
  park(call, c, 'client', ends)
end

-- @lazy
local function park_turn(awaits, state, brain)
  if state ~= 'active' then
    -- The event is published again, because people can now do something else about it.
    if redis.call('HGET', turn, 'awaits') ~= awaits then emit(events, 'turn.parked', {awaits = awaits}) end
    redis.call('HSET', turn, 'awaits', awaits)
    return
  end
  redis.call('HSET', turn, 'state', 'parked', 'awaits', awaits, 'parked_at', now)
  emit(events, 'turn.parked', {awaits = awaits})
  if remove_live(sid, tid, brain) then admit_turns(sid) end
end
