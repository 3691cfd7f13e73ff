-- Opening waves: a wave's calls are asked for together; the next wave opens when all of them are settled.
-- Uses the script's names: turn trace history events guard, and sid tid.
-- @include lib/call
-- @include lib/settled

-- Every call of the step has its message: they enter the history in the model's order, once. Those of step 0
-- (memory and the context pack) answer no reply of the model: they stay in the trace, for the preparer.
local function absorb(step, count)
  for i = 0, count - 1 do
    local call = 'c' .. step .. '-' .. i
    if step > 0 then
      redis.call('RPUSH', history, redis.call('HGET', trace, call .. ':msg'))
      redis.call('HDEL', trace, call .. ':msg')
    end
    forget_work(call)
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
