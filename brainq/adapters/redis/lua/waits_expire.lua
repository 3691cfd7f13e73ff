--[[
End everything that a turn has waited for too long. Approvals are refused, outside results time out, holds follow their
policy, and calls continue that a stop held back and that has been lifted. CANCEL means that the caller must cancel the
turn: a hold's policy requires it, or a turn that depends on its client has waited too long for the client, which may be
gone.

KEYS   turn budget trace history events guard
ARGV   sid tid cancels:b
REPLY  EXPIRED | CANCEL reason | NONE
]]
-- @include lib/waves
-- @include lib/hold_policy
-- @include lib/hook_due
local t = read(turn, {'state', 'step', 'n_calls', 'absorbed', 'cancel', 'holds'})
if (t.state ~= 'active' and t.state ~= 'parked') or t.cancel == '1' then return {'NONE'} end
local reason = cancelling_hold(t.holds)
if reason then return {'CANCEL', reason} end
local due, denies, calls = false, hold_word(t.holds) == 'deny', {}
for i = 1, t.absorbed ~= t.step and tonumber(t.n_calls or 0) or 0 do calls[i] = 'c' .. t.step .. '-' .. i - 1 end
local known = read_calls(calls, {'status', 'park', 'park_ends', 'tool', 'effect', 'started_at', 'stop'})
for _, c in ipairs(cancels == '1' and known or {}) do
  if c.status == 'parked' and c.park == 'client' and tonumber(c.park_ends) <= now then
    return {'CANCEL', 'the client gave no result in time'}
  end
end
for i, c in ipairs(known) do
  if c.status == 'parked' and (tonumber(c.park_ends) <= now or (denies and c.park == 'hold') or is_lifted(c)) then
    due = true
    if c.park == 'outside' or c.park == 'child' or c.park == 'client' then
      local took_ms = now - tonumber(c.started_at or now)
      if c.effect ~= 'read_only' then redis.call('HINCRBY', turn, 'write_epoch', 1) end
      note_hook_due(calls[i], cjson.encode({kind = 'timeout', after_ms = took_ms, latency_ms = took_ms}))
      end_call(calls[i], 'timed_out', tool_message(calls[i], c.tool, tonumber(t.step),
        string.format('No result came from %s within %.1f s.', c.park == 'client' and 'the client' or 'outside', took_ms / 1000)),
        c.park, took_ms, c.tool)
    end
  end
end
if not due then return {'NONE'} end
open_waves()
return {'EXPIRED'}
