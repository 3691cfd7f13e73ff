-- What keeps a call from going on, and a turn whose open calls all wait for somebody outside: it is parked, and its
-- deadline does not run, and its capacity is another's. Uses the script's names: turn budget trace events, and sid tid.
-- @include lib/event
-- @include lib/resume
-- @include lib/admit_turns

-- Whether an approval lets the call go: 'go', 'wait', 'denied' or 'expired'. `c`: its ask, and when that ends.
local function ask_word(call, c)
  if not c.ask or c.ask == 'approved' then return 'go' end
  if c.ask ~= 'pending' then return c.ask end
  if now < tonumber(c.ask_ends) then return 'wait' end
  redis.call('HSET', trace, call .. ':ask', 'expired')
  emit(events, 'approval.decided', {call = call, decision = 'expired'})
  return 'expired'
end

-- `c`: the call's status, and what it was parked by. The event says what to do of a client's own call.
-- @lazy
local function park(call, c, why, ends)
  redis.call('HSET', trace, call .. ':status', 'parked', call .. ':park', why, call .. ':park_ends', ends)
  look_within(sid, tid, tonumber(ends) - now + 1)
  if c.status ~= 'parked' or c.park ~= why then
    local theirs = why == 'client'
    emit(events, 'call.parked', {call = call, why = why, tool = theirs and c.tool or nil,
      arguments = theirs and c.client_args or nil})
  end
  c.status, c.park = 'parked', why
end

-- A call of the client's tool: it is handed to whoever follows the turn, and begins then. `c`: client_ms, client_args and
-- tool, too. Its token is no secret, for a right to steer the turn is what its result needs; no tool can return it.
-- @lazy
local function park_for_client(call, c)
  local ends = now + tonumber(c.client_ms)
  redis.call('HSET', trace, call .. ':token', 'client ' .. call, call .. ':dispatched_at', now, call .. ':started_at', now)
  park(call, c, 'client', ends)
end

-- @lazy
local function park_turn(awaits, state, brain)
  if state ~= 'active' then
    -- It is published anew: what they can do about it is another thing now.
    if redis.call('HGET', turn, 'awaits') ~= awaits then emit(events, 'turn.parked', {awaits = awaits}) end
    redis.call('HSET', turn, 'awaits', awaits)
    return
  end
  redis.call('HSET', turn, 'state', 'parked', 'awaits', awaits, 'parked_at', now)
  emit(events, 'turn.parked', {awaits = awaits})
  if remove_live(sid, tid, brain) then admit_turns(sid) end
end
