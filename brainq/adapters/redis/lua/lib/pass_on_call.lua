-- Pass on a call's doorbell that came to a worker which may not answer it. Uses the names of call_claim.
-- @include lib/pass_on
-- @lazy
local function pass_on_call(why, t, c)
  leave_calls(trace, sid, tid, call, c)
  t.rung, t.passed = c.rung_at, c.passed
  pass_on(why, c.effect, t, trace, call .. ':rung_at', call .. ':passed', sid, tid, call, attempt, {sid, tid, call, attempt}, c.tool)
end
