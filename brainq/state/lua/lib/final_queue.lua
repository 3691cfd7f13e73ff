-- The finalizer's first list is kept short, and tenants take turns for it (start-time fair queueing): a turn that finds it full, or
-- others waiting, waits in `queue`, its score one more than that of its tenant's last, or than that of the last who went. Whoever
-- claims a bell, and the sweeper, publishes those whose turn it is. So one tenant's bells never stand before another's, but a
-- list full of them. `tenants` has each tenant's last score, and as `present` that of the last who went.
-- In outbox mode the list's length is not known: all bells are published at once.
-- @include lib/fields
-- @include lib/tenant
-- @include lib/final_bell
local FINAL_QUEUE = OUTBOX_PREFIX .. '{finalize}:queue'
local place_for_final, fill_finals, leave_finals, ring_final
do -- a script has no more than 200 local names
  local FINAL_TENANTS = OUTBOX_PREFIX .. '{finalize}:tenants'
  local FINALS_IN_LIST, MOST_TRIED, FINALS_KEPT_MS = 8, 1000, 86400000

  -- `finalize`: its bell may go into the list.
  function place_for_final()
    local key = bell_key('finalize')
    if key == '' then return 'finalize' end
    local is_short = redis.call('LLEN', key) < FINALS_IN_LIST
    return is_short and redis.call('EXISTS', FINAL_QUEUE) == 0 and 'finalize' or 'queue'
  end

  local function publish_final(place, sid, tid, step, ahead, fence, again, since_s)
    local suffix = 'final.' .. (ahead or step) .. '.' .. fence
    local how = again == 'again' and ring_anew or ring
    how(place, sid, tid, suffix, {sid, tid, step}, tid, nil, since_s)
  end

  -- A turn that was claimed meanwhile, or is gone, needs none. One whose result has gone out stands before nobody's. Returns whether
  -- the first list has one more.
  local function publish_queued(sid, tid)
    local turn_key = OUTBOX_PREFIX .. '{' .. sid .. '}:t:' .. tid
    local f = read(turn_key, {'fin_step', 'fin_fence', 'fin_rung', 'fin_bell', 'fin_ahead', 'fin_ahead_of', 'result_at'})
    local place, since, again = place_of_bell(f)
    if place ~= 'queue' or f.fin_step == '' then return false end
    local list = f.result_at and 'finalize_later' or 'finalize'
    redis.call('HSET', turn_key, note_bell(list, since))
    local goes_ahead = f.fin_ahead_of == f.fin_step and f.fin_ahead ~= ''
    publish_final(list, sid, tid, f.fin_step, goes_ahead and f.fin_ahead, f.fin_fence, again,
      math.floor(since / 1000))
    return list == 'finalize'
  end

  -- Where nobody waits any more, nothing is known of whose turn it was.
  local function is_over() return redis.call('EXISTS', FINAL_QUEUE) == 0 and redis.call('DEL', FINAL_TENANTS) end

  function leave_finals(sid, tid)
    if redis.call('ZREM', FINAL_QUEUE, sid .. ' ' .. tid) == 1 then is_over() end
  end

  function fill_finals()
    if redis.call('EXISTS', FINAL_QUEUE) == 0 then return end
    local free, present = FINALS_IN_LIST - redis.call('LLEN', bell_key('finalize')), nil
    for _ = 1, MOST_TRIED do
      local first = free > 0 and redis.call('ZPOPMIN', FINAL_QUEUE) or {}
      if not first[1] then break end
      present = first[2]
      if publish_queued(first[1]:match('^(%S+) (%S+)$')) then free = free - 1 end
    end
    if not present then return end
    if is_over() then return end
    redis.call('ZREMRANGEBYSCORE', FINAL_TENANTS, '-inf', '(' .. present)
    redis.call('ZADD', FINAL_TENANTS, present, 'present')
  end

  local function join_finals(sid, tid)
    local tenant = tenant_of(sid)
    local last = redis.call('ZMSCORE', FINAL_TENANTS, tenant, 'present')
    local score = math.max(tonumber(last[1] or 0), tonumber(last[2] or 0)) + 1
    redis.call('ZADD', FINAL_QUEUE, score, sid .. ' ' .. tid)
    redis.call('ZADD', FINAL_TENANTS, score, tenant)
    for _, key in ipairs({FINAL_QUEUE, FINAL_TENANTS}) do redis.call('PEXPIRE', key, FINALS_KEPT_MS) end
    fill_finals()
  end

  -- The bell is where its turn's fields say: `place` is what was noted by note_bell.
  function ring_final(place, sid, tid, step, ahead, fence, again)
    if place == 'queue' then join_finals(sid, tid) else publish_final(place, sid, tid, step, ahead, fence, again) end
  end
end
