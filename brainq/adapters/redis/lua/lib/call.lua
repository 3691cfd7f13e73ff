-- One call: dispatching it, ending it, and opening it when its wave comes. Uses the script's names: turn budget trace
-- events guard, and sid tid.
-- @include lib/event
-- @include lib/read_call
-- @include lib/park
-- @include lib/hold_policy
-- @include lib/ring
-- @include lib/lanes
-- @include lib/call_queue
-- @include lib/stops
-- @include lib/opened
local function tool_message(call, tool, step, text)
  return cjson.encode({role = 'tool', call_id = call, name = tool or '', content = text,
    is_error = true, turn = tid, step = step})
end

-- Dispatch a call. `c` has its effect, tool and attempt.
local function dispatch(call, c)
  redis.call('HSET', trace, call .. ':status', 'dispatched', call .. ':dispatched_at', now, call .. ':rung_at', now)
  emit(events, 'call.dispatched', {call = call, attempt = tonumber(c.attempt)})
  if claim_opened_call and claim_opened_call(call, c) then
    c.status = 'running'
    return
  end
  ring_call(trace, sid, tid, call, c, 'first')
  c.status = 'dispatched'
end

local function end_call(call, status, message, detail, latency_ms, tool)
  redis.call('HSET', trace, call .. ':status', status, call .. ':ended_at', now,
    call .. ':msg', message, call .. ':latency', latency_ms)
  if detail ~= '' then redis.call('HSET', trace, call .. ':detail', detail) end
  emit(events, 'call.ended', {call = call, tool = tool or '', status = status, latency_ms = latency_ms,
    detail = detail})
end

-- Refuse a repeat of a call that has succeeded, if no other write was made since, before it starts.
local function is_repeat(fingerprint, write_epoch)
  return fingerprint ~= '' and redis.call('HGET', guard, fingerprint) == (write_epoch or '0')
end

local REFUSED = {
  denied = 'Not run: a person refused it%s.',
  expired = 'Not run: nobody approved it in time.',
}

-- Open a call whose time may have come and that is not a plain read: it is dispatched, waits for its lanes, is parked,
-- or is refused. `c` has the fields of TO_OPEN, and gets the new status. `t` has the turn's write_epoch and holds.
-- @lazy
local function open_with_care(call, c, t, step)
  local more = read_call(call, {'ask_ends', 'ask_why', 'started_at', 'again', 'lanes', 'client_ms', 'client_args', 'stop_ends'})
  for name, value in pairs(more) do c[name] = value end
  local function ends(status, text, detail)
    c.status = status
    end_call(call, status, tool_message(call, c.tool, step, text), detail, 0, c.tool)
  end
  if is_repeat(c.fp, t.write_epoch) then
    if c.ask == 'pending' then redis.call('HSET', trace, call .. ':ask', 'void') end
    return ends('denied', 'Not run: this exact call already brought its result in this turn, and no tool has changed '
      .. 'anything since. Use that result.', 'duplicate')
  end
  local asked = ask_word(call, c)
  if asked == 'wait' then return park(call, c, 'approval', c.ask_ends) end
  if asked ~= 'go' then
    local why = c.ask_why
    return ends('denied', string.format(REFUSED[asked], why and why ~= '' and ': ' .. why or ''), 'approval')
  end
  if c.stop then
    local word, detail = stop_word(c)
    if word == 'wait' then return park(call, c, 'hold', detail) end
    if word then return ends(word, detail, 'stop') end
  end
  if c.effect == 'read_only' then return dispatch(call, c) end
  local word, until_ms = hold_word(t.holds)
  if word == 'hold' then return park(call, c, 'hold', until_ms) end
  if word == 'deny' then
    local status, text = hold_denial(c)
    return ends(status, text, 'hold')
  end
  if c.client_ms then return park_for_client(call, c) end
  if take_lanes(sid .. ' ' .. tid .. ' ' .. call, c.lanes) then return dispatch(call, c) end
  redis.call('HSET', trace, call .. ':status', 'waiting', call .. ':waits_at', now)
  emit(events, 'call.waiting', {call = call})
  c.status = 'waiting'
end

-- the fields of a call that `open_call` needs
local TO_OPEN = {'status', 'park', 'effect', 'fp', 'tool', 'attempt', 'ask', 'stop'}

-- A read that needs no approval and has met no stop is dispatched at once.
local function open_call(call, c, t, step)
  if c.effect ~= 'read_only' or c.ask or c.stop or is_repeat(c.fp, t.write_epoch) then return open_with_care(call, c, t, step) end
  dispatch(call, c)
end
