-- The thread continues with a call that is opened, or with the turn's next step (lib/stay). It uses the script's names turn, trace,
-- budget, events, history, notices, sid and tid.
-- @include lib/stay
-- @include lib/claim_call
-- @include lib/claim_turn
-- @include lib/read_call

-- Claims a call that was just recorded as dispatched. Returns whether it was claimed.
-- @lazy
local function take_call(call, c)
  local visit = visit_for(c.effect, tid)
  if not visit then return false end
  local remaining_ms, t = time_left_ms(), read(turn, {'step', 'brain', 'format', 'pin'})
  local why = remaining_ms <= 0 and 'expired' or refusal(visit.brains, t, turn)
  if why then return decline(why) end
  local more, attempt = read_call(call, {'spec', 'cap_ms', 'edited', 'waits_at', 'dispatched_at'}), tonumber(c.attempt)
  more.effect, more.tool = c.effect, c.tool
  begin_attempt(call, attempt, c, visit.owner, visit.lease_ms)
  stayed = {reply = {'CALL', call, attempt, call_grant(more, t, remaining_ms)}}
  return true
end

-- Claims the turn, which awaits its coordinator and has no owner. `t` has its fence, step, cancel and isolated. Returns whether it
-- was claimed.
-- @lazy
local function take_turn(t)
  local visit = visit_for('turns', tid)
  if not visit then return false end
  local more = read(turn, {'brain', 'format', 'pin', 'builds', 'lost_attempts'})
  more.step, more.isolated, more.awaits = t.step, t.isolated, 'coordinator'
  -- Only a claim by a doorbell decides which build begins a turn, and whether a turn goes to quarantine.
  local why = t.cancel == '1' and 'cancelled' or time_left_ms() <= 0 and 'expired' or t.step == '0' and visit.declared ~= '' and 'begins'
    or (more.lost_attempts or '0') ~= '0' and 'suspect' or refusal(visit.brains, more, turn)
  if why then return decline(why) end
  local fence = t.fence + 1
  own_turn(more, fence, visit)
  stayed = {reply = {'TURN', fence, now}, reads = visit.reads}
  return true
end

-- Allows the script's thread to continue, unless `queues` is empty.
local function offer_calls(queues, visit)
  if queues == '' then return end
  offer_stay(queues, visit, tid)
  claim_opened_call, claim_next_step = take_call, take_turn
end

local function stayed_reply() return stayed and read_with_claim() end

-- Returns what the script claimed for this visit when it ran before, if its reply was lost; or else nil.
-- @lazy
local function stayed_before(queues, text)
  if queues == '' then return end
  local visit, t = cjson.decode(text), read(turn, {'owner', 'fence', 'step', 'n_calls', 'brain', 'state'})
  if t.state ~= 'active' then return end
  if t.owner == visit.owner then
    stayed = {reply = {'TURN', tonumber(t.fence), now}, reads = visit.reads}
    return read_with_claim()
  end
  for i = 0, tonumber(t.n_calls or 0) - 1 do
    local call = 'c' .. t.step .. '-' .. i
    local c = read_call(call, {'owner', 'status', 'spec', 'cap_ms', 'effect', 'tool', 'edited', 'waits_at', 'dispatched_at', 'attempt'})
    if c.owner == visit.owner and c.status == 'running' then
      return {'CALL', call, tonumber(c.attempt), call_grant(c, t, math.max(0, time_left_ms()))}
    end
  end
end
