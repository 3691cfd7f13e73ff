-- Leaving lanes, and going on of whoever holds its lanes because of that, also when it is a call of another turn.
-- Uses the script's names, as lib/waves, and open_waves.
-- @include lib/lanes
local leave_lanes
-- Who goes on because of the calls that leave their lanes. A queue, not a recursion: a hold that denies may answer for one
-- call after another.
local granted

local function holder_of(call) return sid .. ' ' .. tid .. ' ' .. call end

-- A call that was on its way when a hold was placed goes back to where the hold meets it.
-- @lazy
local function hold_back(call)
  leave_lanes(call)
  redis.call('HSET', trace, call .. ':status', 'planned')
  open_waves()
end

-- A call that waited has its lanes: it enters its queue, meets a hold, or leaves them because its turn ends.
local function go(call)
  local c = read_call(call, {'status', 'effect', 'attempt', 'tool'})
  if c.status == 'dispatched' or c.status == 'running' then return end
  local t = read(turn, {'state', 'cancel', 'holds'})
  if c.status ~= 'waiting' or t.state ~= 'active' or t.cancel == '1' then return leave_lanes(call) end
  if hold_word(t.holds) then return hold_back(call) end
  dispatch(call, c)
end

-- The script's names are this turn's from now on.
local function turn_to(its_sid, its_tid)
  sid, tid = its_sid, its_tid
  local session = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  turn, history = session .. 't:' .. tid, session .. 'history'
  budget, trace, events, guard = turn .. ':budget', turn .. ':trace', turn .. ':events', turn .. ':guard'
end

-- In outbox mode the bell lies with those of the session that the script is about: they are published after it.
-- @lazy
local function let_go_on(holder)
  local its_sid, its_tid, call = holder:match('^(%S+) (%S+) (%S+)$')
  if its_tid == tid then return go(call) end
  local our_sid, our_tid, our_history, our_outbox_sid = sid, tid, history, outbox_sid
  outbox_sid = outbox_sid or sid
  turn_to(its_sid, its_tid)
  go(call)
  turn_to(our_sid, our_tid)
  history, outbox_sid = our_history, our_outbox_sid
end

function leave_lanes(call)
  local holders = leave_lane_queues(holder_of(call))
  if granted then
    for _, holder in ipairs(holders) do granted[#granted + 1] = holder end
    return
  end
  granted = holders
  local at = 1
  while granted[at] do
    let_go_on(granted[at])
    at = at + 1
  end
  granted = nil
end
