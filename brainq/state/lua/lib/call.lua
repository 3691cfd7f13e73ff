-- One call: ask for it, end it, open it when its wave comes.
-- Uses the script's names: turn budget trace events guard, and sid tid.
-- @include lib/event
-- @include lib/park
-- @include lib/ring
-- @include lib/lanes
local function tool_message(call, tool, step, text)
  return cjson.encode({role = 'tool', call_id = call, name = tool or '', content = text,
    is_error = true, turn = tid, step = step})
end

local function dispatch(call, effect, attempt)
  local tool = redis.call('HGET', trace, call .. ':tool')
  redis.call('HSET', trace, call .. ':status', 'dispatched', call .. ':dispatched_at', now, call .. ':rung_at', now)
  emit(turn, events, 'call.dispatched', {call = call, attempt = attempt})
  ring(effect, sid, tid, call .. '.' .. attempt, {sid, tid, call, attempt}, tid, tool)
end

local function end_call(call, status, message, detail, latency_ms)
  redis.call('HSET', trace, call .. ':status', status, call .. ':ended_at', now,
    call .. ':msg', message, call .. ':detail', detail, call .. ':latency', latency_ms)
  emit(turn, events, 'call.ended', {call = call, tool = redis.call('HGET', trace, call .. ':tool') or '',
    status = status, latency_ms = latency_ms, detail = detail})
end

-- A repeat of what already succeeded, with no other write since, is refused before it starts.
local function is_repeat(fingerprint)
  local epoch = redis.call('HGET', guard, fingerprint)
  return epoch and epoch == (redis.call('HGET', turn, 'write_epoch') or '0')
end

local REFUSED = {
  denied = 'Not run: a person refused it%s.',
  expired = 'Not run: nobody approved it in time.',
}

-- A call whose turn to go has come, or may have come: it goes, or waits for its lanes, or is parked, or refused.
local function open_call(call, step)
  local held = redis.call('HMGET', trace, call .. ':effect', call .. ':fp', call .. ':tool', call .. ':attempt',
    call .. ':ask', call .. ':started_at', call .. ':again', call .. ':lanes')
  local function refuse(text, detail) end_call(call, 'denied', tool_message(call, held[3], step, text), detail, 0) end
  if held[2] ~= '' and is_repeat(held[2]) then
    if held[5] == 'pending' then redis.call('HSET', trace, call .. ':ask', 'void') end
    return refuse('Not run: this exact call already brought its result in this turn, and no tool has changed anything '
      .. 'since. Use that result.', 'duplicate')
  end
  local asked = held[5] and ask_word(call) or 'go'
  if asked == 'wait' then return park(call, 'approval', redis.call('HGET', trace, call .. ':ask_ends')) end
  if asked ~= 'go' then
    local why = redis.call('HGET', trace, call .. ':ask_why')
    return refuse(string.format(REFUSED[asked], why and why ~= '' and ': ' .. why or ''), 'approval')
  end
  if held[1] == 'read_only' then return dispatch(call, held[1], tonumber(held[4])) end
  local word, ends = hold_word()
  if word == 'hold' then return park(call, 'hold', ends) end
  if word == 'deny' and held[6] and held[7] == '1' then
    -- Of an idempotent tool. An attempt that was lost may have taken effect: it cannot be said that it was not run.
    return end_call(call, 'unknown', tool_message(call, held[3], step, 'Its worker was lost, and it was not tried '
      .. 'again because changes are on hold. It may or may not have taken effect.'), 'hold', 0)
  end
  if word == 'deny' then
    return refuse('Not run: changes were on hold in this turn, and nobody released them in time.', 'hold')
  end
  if take_lanes(sid .. ' ' .. tid .. ' ' .. call, held[8]) then return dispatch(call, held[1], tonumber(held[4])) end
  redis.call('HSET', trace, call .. ':status', 'waiting')
  emit(turn, events, 'call.waiting', {call = call})
end
