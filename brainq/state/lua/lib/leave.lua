-- Leaving lanes, and going on of whoever holds its lanes because of that, also when it is a call of another turn.
-- Uses the script's names, as lib/waves, and open_waves.
-- @include lib/lanes
local leave_lanes

local function holder_of(call) return sid .. ' ' .. tid .. ' ' .. call end

-- A call that was on its way when a hold was placed goes back to where the hold meets it.
local function hold_back(call)
  leave_lanes(call)
  redis.call('HSET', trace, call .. ':status', 'planned')
  open_waves()
end

do -- a script has no more than 200 local names
  -- A call that waited has its lanes: it enters its queue, meets a hold, or leaves them because its turn ends.
  local function go(call)
    local c = read_call(call, {'status', 'effect', 'attempt', 'tool'})
    if c.status == 'dispatched' or c.status == 'running' then return end
    local t = read(turn, {'state', 'cancel', 'holds'})
    if c.status ~= 'waiting' or t.state ~= 'active' or t.cancel == '1' then return leave_lanes(call) end
    if hold_word(t.holds) then return hold_back(call) end
    dispatch(call, c)
  end

  -- `go`, with the script's names standing for the holder's turn meanwhile. In outbox mode the bell lies with the bells
  -- of the session that the script is about: those are published after it.
  local function go_in_its_turn(holder)
    local its_sid, its_tid, call = holder:match('^(%S+) (%S+) (%S+)$')
    if its_tid == tid then return go(call) end
    local ours = {turn, budget, trace, history, events, guard, sid, tid, outbox_sid}
    outbox_sid, sid, tid = outbox_sid or sid, its_sid, its_tid
    local session = OUTBOX_PREFIX .. '{' .. sid .. '}:'
    turn = session .. 't:' .. tid
    budget, trace, events, guard = turn .. ':budget', turn .. ':trace', turn .. ':events', turn .. ':guard'
    history = session .. 'history'
    go(call)
    turn, budget, trace, history, events, guard, sid, tid, outbox_sid = unpack(ours, 1, 9)
  end

  -- A queue, not a recursion: a hold that denies may answer for one call after another.
  local granted
  function leave_lanes(call)
    local holders = leave_lines(holder_of(call))
    if granted then
      for _, holder in ipairs(holders) do granted[#granted + 1] = holder end
      return
    end
    granted = holders
    local at = 1
    while granted[at] do
      go_in_its_turn(granted[at])
      at = at + 1
    end
    granted = nil
  end
end
