-- One call: ask for it, end it, open it when its wave comes.
-- Uses the script's names: turn trace events guard, and sid tid.
-- @include lib/event
-- @include lib/ring
local function tool_message(call, tool, step, text)
  return cjson.encode({role = 'tool', call_id = call, name = tool or '', content = text,
    is_error = true, turn = tid, step = step})
end

local function dispatch(call, effect, attempt)
  redis.call('HSET', trace, call .. ':status', 'dispatched', call .. ':dispatched_at', now, call .. ':rung_at', now)
  emit(turn, events, 'call.dispatched', {call = call, attempt = attempt})
  ring(effect, sid, tid, call .. '.' .. attempt, {sid, tid, call, attempt}, tid)
end

local function end_call(call, status, message, detail, latency_ms)
  redis.call('HSET', trace, call .. ':status', status, call .. ':ended_at', now,
    call .. ':msg', message, call .. ':detail', detail, call .. ':latency', latency_ms)
  emit(turn, events, 'call.ended', {call = call, status = status, latency_ms = latency_ms, detail = detail})
end

-- A repeat of what already succeeded, with no other write since, is refused before it starts.
local function is_repeat(fingerprint)
  local epoch = redis.call('HGET', guard, fingerprint)
  return epoch and epoch == (redis.call('HGET', turn, 'write_epoch') or '0')
end

local function open_call(call, step, wants)
  local held = redis.call('HMGET', trace, call .. ':effect', call .. ':fp', call .. ':tool', call .. ':attempt')
  if held[2] ~= '' and is_repeat(held[2]) then
    end_call(call, 'denied', tool_message(call, held[3], step,
      'Not run: the same call with the same arguments already succeeded in this turn; use its result.'),
      'duplicate', 0)
  elseif held[1] == 'read_only' then
    dispatch(call, held[1], tonumber(held[4]))
  else
    redis.call('HSET', trace, call .. ':status', 'waiting', call .. ':waiting_at', now)
    emit(turn, events, 'call.waiting', {call = call})
    wants[#wants + 1] = call
  end
end
