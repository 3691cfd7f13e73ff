-- What operators have stopped by name. STOPPED maps `KIND NAME TENANT` to `MODE ENDS JSON`. TENANT is empty for all
-- tenants, MODE is pause or forbid, ENDS is 0 for a stop without an end, and `says` in the JSON is a sentence for
-- people. The field `stops` in BELLS_KEY, and in the capacity's size, shows that there are any; claims and submits read
-- both anyway.
-- @include lib/now
-- @include lib/tenant
-- @include lib/ring
local STOPPED = OUTBOX_PREFIX .. 'stopped'
local MOST_PAUSED_MS = 86400000 -- then a waiting call is denied
-- The sweeper finds waiting work at most this long after a lift; lifting a stop also schedules a check at once.
local STOP_LOOK_MS = 60000

-- Return the first of these fields that is in force, with its mode. A stop that forbids comes before one that pauses.
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

-- Return the JSON of the first of these fields that forbids.
-- @lazy
local function forbidding(fields)
  local stop = fields[1] and stop_in_force(fields)
  return stop and stop.mode == 'forbid' and stop.text
end

-- Return whether work that waits for this field, because it is paused, no longer needs to wait.
-- @lazy
local function is_over_for(field)
  local stop = stop_in_force({field})
  return not stop or stop.mode == 'forbid'
end

-- Return whether a parked call no longer needs to wait for the stop that it met.
local function is_lifted(c)
  return c.stop and c.park == 'hold' and is_over_for(c.stop)
end

-- Return what happens to a call that met a stop (`c.stop`, its field): nil if it continues; `wait`, and until when; or
-- how it ends, and the text.
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

-- Return the stop that a call meets at its claim, by its tool, the tool's server, its turn's brain and its tenant.
-- `brain_here` is the brain of turns that name none.
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

-- Let the call wait for the stop, or be denied, where it is opened. The wait is limited from the first stop that the
-- call met.
-- @lazy
local function note_stopped(call, stop)
  redis.call('HSET', trace, call .. ':stop', stop.field)
  redis.call('HSETNX', trace, call .. ':stop_ends', now + MOST_PAUSED_MS)
end

-- Return all stops in force, as a JSON array of `MODE ENDS JSON`.
-- @lazy
local function all_stops()
  local found = {}
  for _, text in ipairs(redis.call('HVALS', STOPPED)) do
    local ends = text:match('^%l+ (%d+) ')
    if ends == '0' or now < tonumber(ends) then found[#found + 1] = text end
  end
  return found[1] and cjson.encode(found) or ''
end
