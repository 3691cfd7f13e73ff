-- The finalizer's first list, for which tenants take turns (lib/broker_queue). A turn whose step leads to its result
-- and finds no place in the list waits in the queue.
-- @include lib/broker_queue
-- @include lib/final_bell
-- the place `finalize` means that the bell may go into the list
local function place_for_final() return has_place('finalize') and 'finalize' or 'queue' end

local function publish_final(place, sid, tid, step, fence, again, since_s)
  local suffix = 'final.' .. step .. '.' .. fence
  local how = again == 'again' and ring_anew or ring
  how(place, sid, tid, suffix, {sid, tid, step}, tid, nil, since_s)
end

-- Ring for a waiting turn. A turn that was claimed in the meantime, or is gone, needs no bell, and one whose result is
-- out delays no other turn. Returns whether the first list has grown.
local function publish_queued(member)
  local sid, tid = member:match('^(%S+) (%S+)$')
  local turn_key = OUTBOX_PREFIX .. '{' .. sid .. '}:t:' .. tid
  local f = read(turn_key, {'fin_step', 'fin_fence', 'fin_rung', 'fin_bell', 'result_at'})
  local place, since, again = place_of_bell(f)
  if place ~= 'queue' or f.fin_step == '' then return false end
  local list = f.result_at and 'finalize_later' or 'finalize'
  redis.call('HSET', turn_key, note_bell(list, since))
  publish_final(list, sid, tid, f.fin_step, f.fin_fence, again, math.floor(since / 1000))
  return list == 'finalize'
end

local function finals_wait(sid, tid) return is_queued('finalize', sid .. ' ' .. tid) end

-- @lazy
local function leave_finals(sid, tid)
  leave_queue('finalize', sid .. ' ' .. tid)
end

-- @lazy
local function join_finals(sid, tid)
  join_queue('finalize', sid, sid .. ' ' .. tid, publish_queued)
end

-- @lazy
local function publish_finals()
  fill_queue('finalize', publish_queued)
end

local function fill_finals()
  if is_waited_for('finalize') then publish_finals() end
end

-- Ring at the place that the turn's fields name. `place` is the one that note_bell has recorded.
local function ring_final(place, sid, tid, step, fence, again)
  if place == 'queue' then return join_finals(sid, tid) end
  publish_final(place, sid, tid, step, fence, again)
end
