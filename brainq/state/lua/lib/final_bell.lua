-- The doorbell of a finalizer step, and which of the two lists it is in. A result that goes out meanwhile moves no bell: where
-- it is says `fin_bell`, LIST and RUNG AT. A build that does not know that field leaves it behind: then its time is another.
-- @include lib/ring
local function list_of_bell(t)
  local list, rung_at = (t.fin_bell or ''):match('^(%S+) (%S+)$')
  if list and rung_at == t.fin_rung then return list end
  return t.result_at and 'finalize_later' or 'finalize'
end

local function note_bell(list) return 'fin_rung', now, 'fin_bell', list .. ' ' .. now end
