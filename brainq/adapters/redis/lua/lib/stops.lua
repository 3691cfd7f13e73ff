-- What operators have stopped by name. STOPPED has `KIND NAME TENANT` -> `MODE ENDS JSON`: TENANT is empty where every tenant is meant,
-- MODE is pause or forbid, ENDS is 0 where it holds until it is lifted, and JSON `says` it in words. `stops` of BELLS_KEY, and of the capacity's size, says that
-- there are any: both are read by claims and submits anyway.
-- @include lib/now
-- @include lib/tenant
-- @include lib/ring
local STOPPED = OUTBOX_PREFIX .. 'stopped'
local MOST_PAUSED_MS = 86400000 -- then a call that waits is denied
local STOP_LOOK_MS = 60000 -- so long after a lift at most the sweeper finds what waited; whoever lifts has it look at once

-- The first of these fields that is in force, and its mode; one that forbids comes before one that pauses.
-- @lazy
local function stop_in_force(fields)
  local paused
  for i, text in ipairs(redis.call('HMGET', STOPPED, unpack(fields))) do
    local mode, ends, body = (text or ''):match('^(%l+) (%d+) (.*)$')
    if mode and (ends == '0' or now < tonumber(ends)) then
      local stop = {field = fields[i], mode = mode, text = body}
      if mode == 'forbid' then return stop end
      paused = paused or stop
    end
  end
  return paused
end

-- The JSON of the first of these fields that forbids.
-- @lazy
local function forbidding(fields)
  local stop = fields[1] and stop_in_force(fields)
  return stop and stop.mode == 'forbid' and stop.text
end

-- Whether what waits for this field, because it is paused, waits no more.
-- @lazy
local function is_over_for(field)
  local stop = stop_in_force({field})
  return not stop or stop.mode == 'forbid'
end

-- Whether a parked call need not wait for the stop that it met any more.
local function is_lifted(c)
  return c.stop and c.park == 'hold' and is_over_for(c.stop)
end

-- A call that such a stop met (`c.stop`, its field) opens: nil where it goes on; `wait`, and until when; else how it ends, and the text.
-- @lazy
local function stop_word(c)
  local stop, until_ms = stop_in_force({c.stop}), tonumber(c.stop_ends)
  if not stop then return nil end
  if stop.mode == 'pause' and now < until_ms then return 'wait', until_ms end
  local why = cjson.decode(stop.text).says
  if c.started_at and c.again == '1' then
    return 'unknown', 'Its worker was lost, and it was not tried again: ' .. why .. '. It may or may not have taken effect.'
  end
  local rest = stop.mode == 'pause' and ', and it was not lifted in time.' or '. Do not call it again in this turn.'
  return 'denied', 'Not run: ' .. why .. rest
end

-- The stop that a call meets when it is claimed, by its tool, that one's server, its turn's brain and its tenant. `brain_here`: the
-- brain of turns that name none.
-- @lazy
local function stop_of_call(tool, brain, brain_here)
  local tenant, fields = tenant_of(sid), {}
  local server = tool:match('^(.-)__')
  local named = {'tool ' .. tool, 'brain ' .. (brain and brain ~= '' and brain or brain_here), server and 'server ' .. server}
  for _, name in pairs(named) do
    fields[#fields + 1] = name .. ' '
    fields[#fields + 1] = name .. ' ' .. tenant
  end
  fields[#fields + 1] = 'tenant ' .. tenant .. ' '
  return stop_in_force(fields)
end

-- The call waits for it, or is denied, where it is opened: so long at most, from when it met the first one.
-- @lazy
local function note_stopped(call, stop)
  redis.call('HSET', trace, call .. ':stop', stop.field)
  redis.call('HSETNX', trace, call .. ':stop_ends', now + MOST_PAUSED_MS)
end

-- All of them that are in force, as a JSON array of `MODE ENDS JSON`.
-- @lazy
local function all_stops()
  local found = {}
  for _, text in ipairs(redis.call('HVALS', STOPPED)) do
    local ends = text:match('^%l+ (%d+) ')
    if ends == '0' or now < tonumber(ends) then found[#found + 1] = text end
  end
  return found[1] and cjson.encode(found) or ''
end
