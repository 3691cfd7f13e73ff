-- Statuses a call never leaves, but for timed_out -> timed_out_late.
local SETTLED = {
  completed = true, failed = true, denied = true, timed_out = true,
  timed_out_late = true, cancelled = true, unknown = true,
}

-- What only the running of a call needs; a turn of many steps would carry it along. Uses the script's name: trace.
-- `fields` go with it.
local WORK = {'spec', 'cap_ms', 'again', 'rung_at', 'bell', 'lease', 'fp', 'client_args'}

local function forget_work(calls, fields)
  for _, call in ipairs(calls) do
    for _, name in ipairs(WORK) do fields[#fields + 1] = call .. ':' .. name end
  end
  redis.call('HDEL', trace, unpack(fields))
end
