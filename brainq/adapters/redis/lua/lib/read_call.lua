-- Return fields of calls by name, with false for each that is missing. Uses the script's name: trace.
local function read_calls(calls, names)
  local fields, found = {}, {}
  for _, call in ipairs(calls) do
    for _, name in ipairs(names) do fields[#fields + 1] = call .. ':' .. name end
  end
  local values = {}
  for first = 1, #fields, 1000 do  -- Lua can put only some thousand values on its stack
    local some = redis.call('HMGET', trace, unpack(fields, first, math.min(first + 999, #fields)))
    if first == 1 then values = some else for i, value in ipairs(some) do values[first + i - 1] = value end end
  end
  for i = 1, #calls do
    found[i] = {}
    for j, name in ipairs(names) do found[i][name] = values[(i - 1) * #names + j] end
  end
  return found
end

local function read_call(call, names) return read_calls({call}, names)[1] end
