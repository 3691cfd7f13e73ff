-- The fence of a turn. Only the owner of its newest claim passes it, while the turn is open.
-- @include lib/fields
local function is_owner(t, who, number) return t.state == 'active' and t.owner == who and tonumber(t.fence) == number end

local function is_owned_by(turn_key, who, number)
  local t = read(turn_key, {'state', 'owner', 'fence'})
  return is_owner(t, who, number)
end
