-- Statuses a call never leaves, but for timed_out -> timed_out_late.
local SETTLED = {
  completed = true, failed = true, denied = true, timed_out = true,
  timed_out_late = true, cancelled = true, unknown = true,
}
