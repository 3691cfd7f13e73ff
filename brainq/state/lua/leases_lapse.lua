--[[
End what a process that is gone holds of one turn now: its lease of the turn, of calls, of the finalizer's step. What it
renewed after `absent_at` shows that it lives, and stays. A write that has begun ends one beat later. The turn is looked at
as soon as that is over.

KEYS   turn trace
ARGV   sid tid process absent_at:n lease_ms:n beat_ms:n
REPLY  LAPSED leases:n | NONE
]]
-- @include lib/fields
-- @include lib/read_call
-- @include lib/index
local lapsed = 0

local function is_its(owner, lease)
  lease = tonumber(lease or '')
  if not owner or not lease or lease <= now or lease - lease_ms >= absent_at then return false end
  return owner == process or owner:sub(-#process - 1) == '@' .. process
end

local function lapse(key, field, after_ms)
  redis.call('HSET', key, field, now + after_ms)
  look_within(sid, tid, after_ms)
  lapsed = lapsed + 1
end

local t = read(turn, {'state', 'owner', 'lease_until', 'awaits', 'step', 'n_calls', 'fin_owner', 'fin_lease'})
if is_its(t.owner, t.lease_until) then lapse(turn, 'lease_until', 0) end
if is_its(t.fin_owner, t.fin_lease) then lapse(turn, 'fin_lease', 0) end
if t.state == 'active' and t.awaits == 'calls' then
  for i = 0, tonumber(t.n_calls) - 1 do
    local call = 'c' .. t.step .. '-' .. i
    local c = read_call(call, {'status', 'owner', 'lease', 'effect', 'begun', 'attempt'})
    if c.status == 'running' and is_its(c.owner, c.lease) then
      local wrote = c.effect ~= 'read_only' and c.begun == c.attempt
      if not wrote then lapse(trace, call .. ':lease', 0)
      elseif tonumber(c.lease) > now + beat_ms then lapse(trace, call .. ':lease', beat_ms) end
    end
  end
end
if lapsed == 0 then return {'NONE'} end
return {'LAPSED', lapsed}
