-- A turn that waits. Where its session is idle it waits for room: a session that stands in no line is put into one. Uses the
-- names of turn_sweep.
-- @include lib/fill
local function sweep_queued()
  after = seldom_ms()
  local s = read(OUTBOX_PREFIX .. '{' .. sid .. '}:session', {'live', 'paused'})
  if s.paused ~= '1' and (not s.live or s.live == '') then
    stand_in_line(sid)
    fill_room(sid)
  end
end
