-- Statuses a call never leaves, but for timed_out -> timed_out_late.
local SETTLED = {
  completed = true, failed = true, denied = true, timed_out = true,
  timed_out_late = true, cancelled = true, unknown = true,
}

-- What only the running of a call needs; a turn of many steps would carry it along. Uses the script's name: trace.
local function forget_work(call)
  redis.call('HDEL', trace, call .. ':spec', call .. ':cap_ms', call .. ':again', call .. ':rung_at', call .. ':lease',
    call .. ':fp')
end
