-- Opening waves: a wave's calls are asked for together; the next wave opens when all of them are settled.
-- Uses the script's names: turn trace history events guard, and sid tid.
-- @include lib/event
-- @include lib/ring
-- @include lib/settled

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

-- Every call of the step has its message: they enter the history in the model's order, once.
local function absorb(step, count)
  for i = 0, count - 1 do
    local call = 'c' .. step .. '-' .. i
    redis.call('RPUSH', history, redis.call('HGET', trace, call .. ':msg'))
    redis.call('HDEL', trace, call .. ':msg', call .. ':spec')
  end
  redis.call('HSET', turn, 'absorbed', step)
end

-- Returns the calls that now wait for their lanes.
local function open_waves()
  local held = redis.call('HMGET', turn, 'step', 'n_calls', 'wave', 'waves')
  local step, count, wave, waves = tonumber(held[1]), tonumber(held[2]), tonumber(held[3]), tonumber(held[4])
  local fields = {}
  for i = 0, count - 1 do
    fields[#fields + 1] = 'c' .. step .. '-' .. i .. ':status'
    fields[#fields + 1] = 'c' .. step .. '-' .. i .. ':wave'
  end
  local wants = {}
  while wave <= waves do
    local known, open = redis.call('HMGET', trace, unpack(fields)), 0
    for i = 0, count - 1 do
      if tonumber(known[2 * i + 2]) == wave and not SETTLED[known[2 * i + 1]] then
        local call = 'c' .. step .. '-' .. i
        if known[2 * i + 1] == 'planned' then open_call(call, step, wants) end
        if not SETTLED[redis.call('HGET', trace, call .. ':status')] then open = open + 1 end
      end
    end
    if open > 0 then
      redis.call('HSET', turn, 'wave', wave)
      return wants
    end
    wave = wave + 1
  end
  absorb(step, count)
  redis.call('HSET', turn, 'wave', wave, 'awaits', 'coordinator', 'rung_at', now)
  local fence = tonumber(redis.call('HGET', turn, 'fence'))
  ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
  return wants
end
