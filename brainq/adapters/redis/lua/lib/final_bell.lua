-- The doorbell of a finalizer step, and its place. It is in one of two lists, or the turn waits in its tenant's queue
-- for a place in the first list (`queue`, lib/final_queue). Publishing the result does not move the bell. `fin_bell`
-- has PLACE, RUNG AT, WAITS SINCE, and `again` if it was rung for before. A build that does not know this field leaves
-- it unchanged, and its time then differs from `fin_rung`.
-- @include lib/ring
local function place_of_bell(t)
  local place, rung_at, since, again = (t.fin_bell or ''):match('^(%S+) (%S+) ?(%S*) ?(%S*)$')
  if place and rung_at == t.fin_rung then return place, tonumber(since), again end
  return t.result_at and 'finalize_later' or 'finalize', nil, ''
end

local function note_bell(place, since, again)
  return 'fin_rung', now, 'fin_bell', place .. ' ' .. now .. ' ' .. (since or now) .. ' ' .. (again or '')
end
