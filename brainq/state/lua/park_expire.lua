--[[
Let everything end that a turn has waited for too long: approvals are refused, outside results time out, holds follow
their policy. CANCEL: a hold's policy is to cancel the turn, and that is for the caller to do.

KEYS   turn budget trace history events guard
ARGV   sid tid
REPLY  EXPIRED | CANCEL reason | NONE
]]
-- @include lib/waves
-- @include lib/holds_end
local held = redis.call('HMGET', turn, 'state', 'step', 'n_calls', 'absorbed', 'cancel')
if (held[1] ~= 'active' and held[1] ~= 'parked') or held[5] == '1' then return {'NONE'} end
local reason = cancelling_hold()
if reason then return {'CANCEL', reason} end
local due, denies = false, hold_word() == 'deny'
for i = 0, held[4] ~= held[2] and tonumber(held[3] or 0) - 1 or -1 do
  local call = 'c' .. held[2] .. '-' .. i
  local known = redis.call('HMGET', trace, call .. ':status', call .. ':park', call .. ':park_ends', call .. ':tool',
    call .. ':effect', call .. ':started_at')
  if known[1] == 'parked' and (tonumber(known[3]) <= now or (denies and known[2] == 'hold')) then
    due = true
    if known[2] == 'outside' or known[2] == 'child' then
      local took_ms = now - tonumber(known[6] or now)
      if known[5] ~= 'read_only' then redis.call('HINCRBY', turn, 'write_epoch', 1) end
      end_call(call, 'timed_out', tool_message(call, known[4], tonumber(held[2]),
        string.format('No result came from outside within %.1f s.', took_ms / 1000)), known[2], took_ms)
    end
  end
end
if not due then return {'NONE'} end
open_waves()
return {'EXPIRED'}
