-- Opening waves: a wave's calls are asked for together; the next wave opens when all of them are settled.
-- Uses the script's names: turn budget trace history events guard, and sid tid.
-- @include lib/history
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

local function ring_coordinator()
  redis.call('HSET', turn, 'rung_at', now)
  local fence = tonumber(redis.call('HGET', turn, 'fence'))
  ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, fence}, tid)
end

local MAY_GO = {planned = true, approval = true, hold = true}

-- Opens what may go now, and says whether the turn is parked by what is left. A turn that is being cancelled opens
-- nothing: it ends once nothing runs in it. `open_calls` counts a wave's open calls while none of them is parked.
local function open_waves()
  local held = redis.call('HMGET', turn, 'step', 'n_calls', 'wave', 'waves', 'cancel')
  local step, count, wave, waves = tonumber(held[1]), tonumber(held[2]), tonumber(held[3]), tonumber(held[4])
  local fields = {}
  for i = 0, count - 1 do
    for _, part in ipairs({':status', ':wave', ':park'}) do fields[#fields + 1] = 'c' .. step .. '-' .. i .. part end
  end
  while wave <= waves do
    local known, open, parked, awaits = redis.call('HMGET', trace, unpack(fields)), 0, 0, 'outside'
    for i = 0, count - 1 do
      local call, status, park_word = 'c' .. step .. '-' .. i, known[3 * i + 1], known[3 * i + 3]
      if tonumber(known[3 * i + 2]) == wave and not SETTLED[status] then
        if held[5] ~= '1' and MAY_GO[status == 'parked' and park_word or status] then
          open_call(call, step)
          local after = redis.call('HMGET', trace, call .. ':status', call .. ':park')
          status, park_word = after[1], after[2]
        end
        if not SETTLED[status] then open = open + 1 end
        if held[5] == '1' and status == 'running' then return end
        if status == 'parked' then
          parked = parked + 1
          if park_word == 'approval' or park_word == 'hold' then awaits = 'people' end
        end
      end
    end
    if held[5] == '1' then return ring_coordinator() end
    if open > 0 then
      redis.call('HSET', turn, 'wave', wave, 'open_calls', parked == 0 and open or 0)
      if parked == open then return park_turn(awaits) end
      return resume_turn(turn, budget, events, 'calls')
    end
    wave = wave + 1
  end
  if held[5] ~= '1' then resume_turn(turn, budget, events, 'coordinator') end
  absorb(step, count)
  redis.call('HSET', turn, 'wave', wave, 'awaits', 'coordinator')
  ring_coordinator()
end

-- A call of the wave has ended: the last one opens what comes next.
local function count_down()
  local left = redis.call('HINCRBY', turn, 'open_calls', -1)
  if left <= 0 or redis.call('HGET', turn, 'cancel') == '1' then open_waves() end
end
-- @include lib/leave
