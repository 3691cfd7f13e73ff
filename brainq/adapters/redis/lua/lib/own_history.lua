-- A review turn has a separate history. After `use_own_history`, which takes the turn's field `isolated`, `history` is
-- that one. Uses the script's names: turn history.
local session_history, isolated = history, false
local function use_own_history(word)
  isolated = word == '1'
  if isolated then history = turn .. ':history' end
end
