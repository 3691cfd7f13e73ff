-- The fence of the finalizer's chain: the turn's fields of these names, for whoever holds the step that is at work; nil for
-- everybody else.
-- @include lib/fields
local function step_held(turn_key, number, names)
  local t = read(turn_key, {'fin_fence', 'fin_owner', unpack(names)})
  return tonumber(t.fin_fence or -1) == number and t.fin_owner ~= '' and t or nil
end
