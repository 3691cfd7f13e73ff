-- Leave lanes, and let the calls that now hold their lanes continue, including calls of other turns. Uses the script's
-- names, as lib/waves does, and open_waves.
-- @include lib/lanes
local leave_lanes
-- The calls that may continue because others leave their lanes. This is a queue and not a recursion, because a hold
-- that denies may end one call after another.
local granted

local function holder_of(call) return sid .. ' ' .. tid .. ' ' .. call end

-- Send a call back to where the hold applies. The hold was placed while the call was on its way.
-- @lazy
local function hold_back(call)
  leave_lanes(call)
  redis.call('HSET', trace, call .. ':status', 'planned')
  open_waves()
end

-- Handle a call that waited and now has its lanes. It enters its queue, meets a hold, or leaves its lanes because its
-- turn ends.
local function go(call)
  local c = read_call(call, {'status', 'effect', 'attempt', 'tool'})
  if c.status == 'dispatched' or c.status == 'running' then return end
  local t = read(turn, {'state', 'cancel', 'holds'})
  if c.status ~= 'waiting' or t.state ~= 'active' or t.cancel == '1' then return leave_lanes(call) end
  if hold_word(t.holds) then return hold_back(call) end
  dispatch(call, c)
end

-- Make the script's names refer to another turn.
local function turn_to(its_sid, its_tid)
  sid, tid = its_sid, its_tid
  local session = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  turn, history = session .. 't:' .. tid, session .. 'history'
  budget, trace, events, guard = turn .. ':budget', turn .. ':trace', turn .. ':events', turn .. ':guard'
end

-- In outbox mode the bell goes to the outbox of the session that the script works on, which is published after it.
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
