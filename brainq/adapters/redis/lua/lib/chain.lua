-- The fence of the finalizer's chain: only who holds the step that is at work passes it. `t`: the turn's fin_fence and fin_owner.
-- @include lib/fields
local function holds_step(t, number) return tonumber(t.fin_fence or -1) == number and t.fin_owner ~= '' end

-- Its owner has gone on from it by this very script, whose reply was lost.
local function has_gone_on(t, number, who)
  return who ~= '' and t.fin_owner == who and tonumber(t.fin_fence or -1) == number + 1
end
