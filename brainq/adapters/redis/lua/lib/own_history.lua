-- A review turn has a history of its own: `history` is that one from `use_own_history` on, which takes the turn's field
-- `isolated`. Uses the script's names: turn history.
local session_history, isolated = history, false
local function use_own_history(word)
  isolated = word == '1'
  if isolated then history = turn .. ':history' end
end
