-- What keeps a call from going on, and a turn whose open calls all wait for somebody outside: it is parked, and its
-- deadline stands still. Uses the script's names: turn budget trace events, and sid tid.
-- @include lib/event
-- @include lib/resume

-- What the turn's holds say of calls that change something: nil, 'hold' and when to look again, or 'deny'.
local function hold_word()
  local text = redis.call('HGET', turn, 'holds')
  if not text or text == '' then return nil end
  local word, until_ms
  for _, hold in pairs(cjson.decode(text)) do
    if now < hold.ends or hold.policy == 'cancel' then
      if not word then word = 'hold' end
      if not until_ms or hold.ends < until_ms then until_ms = hold.ends end
    elseif hold.policy == 'deny' then
      word = 'deny'
    end
  end
  return word, until_ms
end

-- Whether an approval lets the call go: 'go', 'wait', 'denied' or 'expired'.
local function ask_word(call)
  local held = redis.call('HMGET', trace, call .. ':ask', call .. ':ask_ends')
  if not held[1] or held[1] == 'approved' then return 'go' end
  if held[1] ~= 'pending' then return held[1] end
  if now < tonumber(held[2]) then return 'wait' end
  redis.call('HSET', trace, call .. ':ask', 'expired')
  emit(turn, events, 'approval.decided', {call = call, decision = 'expired'})
  return 'expired'
end

local function park(call, why, ends)
  local held = redis.call('HMGET', trace, call .. ':status', call .. ':park')
  redis.call('HSET', trace, call .. ':status', 'parked', call .. ':park', why, call .. ':park_ends', ends)
  look_within(sid, tid, tonumber(ends) - now + 1)
  if held[1] ~= 'parked' or held[2] ~= why then emit(turn, events, 'call.parked', {call = call, why = why}) end
end

local function park_turn(awaits)
  if redis.call('HGET', turn, 'state') ~= 'active' then
    redis.call('HSET', turn, 'awaits', awaits)
    return
  end
  redis.call('HSET', turn, 'state', 'parked', 'awaits', awaits, 'parked_at', now)
  emit(turn, events, 'turn.parked', {awaits = awaits})
end
