-- The fence of the finalizer's chain. Only the owner of the current step passes it. `t` has the turn's fin_fence and
-- fin_owner.
-- @include lib/fields
local function holds_step(t, number) return tonumber(t.fin_fence or -1) == number and t.fin_owner ~= '' end

-- Return whether the owner has already continued after this step, in a call of this script whose reply was lost.
local function has_gone_on(t, number, who)
  return who ~= '' and t.fin_owner == who and tonumber(t.fin_fence or -1) == number + 1
end
