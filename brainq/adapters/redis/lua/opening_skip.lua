--[[
Continue without the results of memory and the context pack that have not come in time. Their calls time out, and a
later result is late like any other.

KEYS   turn budget trace history events guard
ARGV   sid tid
REPLY  SKIPPED | ALREADY | EARLY
]]
-- @include lib/waves
local t = read(turn, {'state', 'awaits', 'step', 'n_calls', 'opening_until', 'cancel'})
local open = t.state == 'parked' or (t.state == 'active' and t.awaits == 'calls')
if not open or t.step ~= '0' or t.cancel == '1' then return {'ALREADY'} end
if now < tonumber(t.opening_until) then return {'EARLY'} end
for i = 0, tonumber(t.n_calls) - 1 do
  local call = 'c0-' .. i
  local c = read_call(call, {'status', 'tool', 'started_at', 'effect', 'bell'})
  if not SETTLED[c.status] then
    leave_calls(trace, sid, tid, call, c)
    local took_ms = c.started_at and now - tonumber(c.started_at) or 0
    local message = tool_message(call, c.tool, 0, 'It took too long.')
    end_call(call, 'timed_out', message, 'not waited for', took_ms, c.tool)
  end
end
open_waves()
return {'SKIPPED'}
