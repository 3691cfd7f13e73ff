--[[
Go on without what memory and the context pack have not brought in time: their calls time out, and a result that
comes later is late like any other.

KEYS   turn budget trace history events guard
ARGV   sid tid
REPLY  SKIPPED | ALREADY | EARLY
]]
-- @include lib/waves
local held = redis.call('HMGET', turn, 'state', 'awaits', 'step', 'n_calls', 'opening_until', 'cancel')
local open = held[1] == 'parked' or (held[1] == 'active' and held[2] == 'calls')
if not open or held[3] ~= '0' or held[6] == '1' then return {'ALREADY'} end
if now < tonumber(held[5]) then return {'EARLY'} end
for i = 0, tonumber(held[4]) - 1 do
  local call = 'c0-' .. i
  local known = redis.call('HMGET', trace, call .. ':status', call .. ':tool', call .. ':started_at')
  if not SETTLED[known[1]] then
    local took_ms = known[3] and now - tonumber(known[3]) or 0
    end_call(call, 'timed_out', tool_message(call, known[2], 0, 'It took too long.'), 'not waited for', took_ms)
  end
end
open_waves()
return {'SKIPPED'}
