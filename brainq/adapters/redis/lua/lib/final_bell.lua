-- The doorbell of a finalizer step, and where it is: in one of the two lists, or its turn waits in the queue of its tenant for a
-- place in the first (`queue`, lib/final_queue). A result that goes out meanwhile moves no bell: where it is says `fin_bell`,
-- PLACE, RUNG AT, WAITS SINCE, and `again` where it was rung for before. A build that does not know that field leaves it behind:
-- then its time is another.
-- @include lib/ring
local function place_of_bell(t)
  local place, rung_at, since, again = (t.fin_bell or ''):match('^(%S+) (%S+) ?(%S*) ?(%S*)$')
  if place and rung_at == t.fin_rung then return place, tonumber(since), again end
  return t.result_at and 'finalize_later' or 'finalize', nil, ''
end

local function note_bell(place, since, again)
  return 'fin_rung', now, 'fin_bell', place .. ' ' .. now .. ' ' .. (since or now) .. ' ' .. (again or '')
end
