-- Tenants take turns for the lists of calls, one an effect (lib/broker_queue): a dispatched call that finds no place there waits
-- in the queue. That it does says CALL:bell: `first`, or `again` where it was rung for before. Of one that waited, and whose
-- first doorbell was rung then, it says when.
-- @include lib/broker_queue
local function waits_by(bell) return bell == 'first' or bell == 'again' end

local function member_of(sid, tid, call) return sid .. ' ' .. tid .. ' ' .. call end

local function ring_attempt(effect, sid, tid, call, attempt, tool, how, since_s)
  local ring_it = how == 'again' and ring_anew or ring
  ring_it(effect, sid, tid, call .. '.' .. attempt, {sid, tid, call, tonumber(attempt)}, tid, tool, since_s)
end

-- A call that was claimed meanwhile, has ended, or is gone, needs none.
local function publish_call(member)
  local sid, tid, call = member:match('^(%S+) (%S+) (%S+)$')
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:t:' .. tid .. ':trace'
  local status, how, effect, attempt, tool, since = unpack(redis.call('HMGET', key, call .. ':status', call .. ':bell',
    call .. ':effect', call .. ':attempt', call .. ':tool', call .. ':dispatched_at'))
  if status ~= 'dispatched' or not waits_by(how) then return false end
  redis.call('HSET', key, call .. ':rung_at', now, call .. ':bell', how == 'first' and now or '')
  ring_attempt(effect, sid, tid, call, attempt, tool, how, math.floor(since / 1000))
  return true
end

-- @lazy
local function publish_calls(effect)
  fill_queue(effect, publish_call)
end

-- Publish what is next, in the lists of these effects (words).
local function fill_calls(effects)
  for effect in effects:gmatch('%S+') do
    if is_waited_for(effect) then publish_calls(effect) end
  end
end

-- Whether it waits for its tenant's turn; `lost` where it is to, and the queue does not have it. `c`: its bell and effect.
local function call_waits(sid, tid, call, c)
  return waits_by(c.bell) and (is_queued(c.effect, member_of(sid, tid, call)) and 'queued' or 'lost') or false
end

-- @lazy
local function leave_call_queue(trace_key, sid, tid, call, effect)
  leave_queue(effect, member_of(sid, tid, call))
  redis.call('HSET', trace_key, call .. ':bell', '')
end

-- It is claimed by a copy of its doorbell, or has ended: it waits no more. Returns whether it did.
local function leave_calls(trace_key, sid, tid, call, c)
  if not waits_by(c.bell) then return false end
  leave_call_queue(trace_key, sid, tid, call, c.effect)
  return true
end

-- @lazy
local function join_call_queue(trace_key, sid, tid, call, effect, how)
  redis.call('HSET', trace_key, call .. ':bell', how)
  join_queue(effect, sid, member_of(sid, tid, call), publish_call)
end

-- Ring for a call that was just noted as dispatched. `c`: its effect, attempt and tool; `how`: `first` or `again`.
local function ring_call(trace_key, sid, tid, call, c, how)
  if has_place(c.effect) then return ring_attempt(c.effect, sid, tid, call, c.attempt, c.tool, how) end
  join_call_queue(trace_key, sid, tid, call, c.effect, how)
end
