-- The fence: only the owner of the newest claim of a turn that is still open passes it.
-- @include lib/fields
local function fits(t, who, number) return t.state == 'active' and t.owner == who and tonumber(t.fence) == number end

local function holds(turn_key, who, number) return fits(read(turn_key, {'state', 'owner', 'fence'}), who, number) end

-- The fields of these names of the turn, for its owner; nil for everybody else.
local function held_by(turn_key, who, number, names)
  local asked = {'state', 'owner', 'fence', unpack(names)}
  local t = read(turn_key, asked)
  return fits(t, who, number) and t or nil
end
