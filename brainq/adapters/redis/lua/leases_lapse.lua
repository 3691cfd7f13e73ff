--[[
End the leases that a gone process holds in one turn: of the turn, of its calls, and of the finalizer's step. A lease
that was renewed after `absent_at` shows that the process is alive, and stays. A write that has begun loses its lease
one beat later. The lease of a call's lanes ends with that of the call, because it would otherwise keep the call from a
next attempt, and others from the lanes. The turn is checked then.

KEYS   turn trace leases
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

local function lapse_lanes(call, after_ms)
  local holder = sid .. ' ' .. tid .. ' ' .. call
  local until_ms = tonumber(redis.call('ZSCORE', leases, holder) or 0)
  if until_ms > now + after_ms and until_ms - lease_ms < absent_at then
    redis.call('ZADD', leases, 'XX', now + after_ms, holder)
  end
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
      local after_ms = wrote and beat_ms or 0
      if tonumber(c.lease) > now + after_ms then lapse(trace, call .. ':lease', after_ms) end
      lapse_lanes(call, after_ms)
    end
  end
end
if lapsed == 0 then return {'NONE'} end
return {'LAPSED', lapsed}
