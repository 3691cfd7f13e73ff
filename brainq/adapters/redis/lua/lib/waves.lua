-- Opening waves. The calls of a wave are dispatched together, and the next wave opens when all of them are settled.
-- Uses the script's names: turn budget trace history events guard, and sid tid.
-- @include lib/fields
-- @include lib/call
-- @include lib/settled
-- @include lib/absorb
-- @include lib/shrink_parked

local function ring_coordinator(fence)
  ring('turns', sid, tid, 'advance.' .. fence, {sid, tid, tonumber(fence)}, tid)
end

local OF_WAVES = {'step', 'n_calls', 'wave', 'waves', 'cancel', 'state', 'fence', 'holds', 'write_epoch', 'isolated',
  'brain'}
local MAY_GO = {planned = true, approval = true, hold = true}

-- Return the open calls of this wave, after opening those that may be dispatched now. `known` has all calls of the
-- step, with status, wave and park, or with the fields that `open_call` needs.
local function open_wave(wave, calls, known, t, step)
  local open, places, names = {}, {}, {}
  for i, call in ipairs(calls) do
    local c = known[i]
    if tonumber(c.wave) == wave and not SETTLED[c.status] then
      open[#open + 1] = c
      if MAY_GO[c.status == 'parked' and c.park or c.status] then
        names[#names + 1], places[#places + 1] = call, #open
      end
    end
  end
  local read_now = #names > 0 and not known[1].effect and read_calls(names, TO_OPEN)
  for i, call in ipairs(names) do
    local c = read_now and read_now[i] or open[places[i]]
    open[places[i]] = c
    open_call(call, c, t, step)
  end
  return open
end

-- Open the calls that may be dispatched now, and return whether the remaining ones park the turn. A turn that is being
-- cancelled opens nothing, and ends once none of its calls runs. `open_calls` counts the open calls of a wave while
-- none of them is parked. `t` and `known` are the turn and its calls, with the fields of OF_WAVES and open_wave, if the
-- script has them.
-- @lazy
local function open_waves(t, known)
  t = t or read(turn, OF_WAVES)
  local step, wave, calls, prefix = tonumber(t.step), tonumber(t.wave), {}, 'c' .. t.step .. '-'
  for i = 1, tonumber(t.n_calls) do calls[i] = prefix .. i - 1 end
  known = known or read_calls(calls, {'status', 'wave', 'park'})
  while wave <= tonumber(t.waves) do
    if t.cancel == '1' then
      for _, c in ipairs(known) do
        if tonumber(c.wave) == wave and c.status == 'running' then return end
      end
      redis.call('HSET', turn, 'rung_at', now)
      return ring_coordinator(t.fence)
    end
    local open, parked, awaits = 0, 0, 'outside'
    for _, c in ipairs(open_wave(wave, calls, known, t, step)) do
      if not SETTLED[c.status] then open = open + 1 end
      if c.status == 'parked' then
        parked = parked + 1
        -- The client's calls come first, because it acts on their events.
        if c.park == 'client' then awaits = 'client' end
        if awaits ~= 'client' and (c.park == 'approval' or c.park == 'hold') then awaits = 'people' end
      end
    end
    if open > 0 then
      redis.call('HSET', turn, 'wave', wave, 'open_calls', parked == 0 and open or 0)
      if parked == open then
        park_turn(awaits, t.state, t.brain)
        if t.state == 'active' then make_small(calls, known) end
        return
      end
      if t.state == 'parked' then resume_turn(turn, budget, events, 'calls') end
      return
    end
    wave = wave + 1
  end
  if t.state == 'parked' and t.cancel ~= '1' then resume_turn(turn, budget, events, 'coordinator') end
  absorb(step, calls, t.isolated)
  redis.call('HSET', turn, 'absorbed', step, 'wave', wave, 'awaits', 'coordinator', 'rung_at', now)
  if not (claim_next_step and claim_next_step(t)) then ring_coordinator(t.fence) end
end

-- Count a call of the wave that has ended. The last one opens what comes next.
local function count_down(cancel)
  local left = redis.call('HINCRBY', turn, 'open_calls', -1)
  if left <= 0 or cancel == '1' then open_waves() end
end
-- @include lib/leave_lanes
