-- Tenants take turns for the lists of calls, one an effect (lib/tenant_queue): a dispatched call that finds no place there waits
-- in the queue. That it does says CALL:bell: `first`, or `again` where it was rung for before. Of one that waited, and whose
-- first doorbell was rung then, it says when.
-- @include lib/tenant_queue
local fill_calls, leave_calls, call_waits, ring_call
do -- a script has no more than 200 local names
  local WAITS = {first = true, again = true}

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
    if status ~= 'dispatched' or not WAITS[how] then return false end
    redis.call('HSET', key, call .. ':rung_at', now, call .. ':bell', how == 'first' and now or '')
    ring_attempt(effect, sid, tid, call, attempt, tool, how, math.floor(since / 1000))
    return true
  end

  -- Publish what is next, in the lists of these effects (words).
  function fill_calls(effects)
    for effect in effects:gmatch('%S+') do fill_queue(effect, publish_call) end
  end

  -- Whether it waits for its tenant's turn; `lost` where it is to, and the queue does not have it. `c`: its bell and effect.
  function call_waits(sid, tid, call, c)
    return WAITS[c.bell] and (is_queued(c.effect, member_of(sid, tid, call)) and 'queued' or 'lost') or false
  end

  -- It is claimed by a copy of its doorbell, or has ended: it waits no more. Returns whether it did.
  function leave_calls(trace_key, sid, tid, call, c)
    if not WAITS[c.bell] then return false end
    leave_queue(c.effect, member_of(sid, tid, call))
    redis.call('HSET', trace_key, call .. ':bell', '')
    return true
  end

  -- Ring for a call that was just noted as dispatched. `c`: its effect, attempt and tool; `how`: `first` or `again`.
  function ring_call(trace_key, sid, tid, call, c, how)
    if has_place(c.effect) then return ring_attempt(c.effect, sid, tid, call, c.attempt, c.tool, how) end
    redis.call('HSET', trace_key, call .. ':bell', how)
    join_queue(c.effect, sid, member_of(sid, tid, call), publish_call)
  end
end
