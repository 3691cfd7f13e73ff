-- The statuses that a call never leaves, except from timed_out to timed_out_late.
local SETTLED = {
  completed = true, failed = true, denied = true, timed_out = true,
  timed_out_late = true, cancelled = true, unknown = true,
}

-- Remove the fields that only a running call needs, because a turn of many steps would keep them. `fields` are removed
-- with them. Uses the script's name: trace.
local WORK = {'spec', 'cap_ms', 'again', 'rung_at', 'bell', 'lease', 'fp', 'client_args'}

local function forget_work(calls, fields)
  for _, call in ipairs(calls) do
    for _, name in ipairs(WORK) do fields[#fields + 1] = call .. ':' .. name end
  end
  redis.call('HDEL', trace, unpack(fields))
end
