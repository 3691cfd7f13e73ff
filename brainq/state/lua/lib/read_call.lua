-- Fields of calls by their names; false for each that a call lacks. Uses the script's name: trace.
local function read_calls(calls, names)
  local fields, found = {}, {}
  for _, call in ipairs(calls) do
    for _, name in ipairs(names) do fields[#fields + 1] = call .. ':' .. name end
  end
  local values = #fields > 0 and redis.call('HMGET', trace, unpack(fields))
  for i = 1, #calls do
    found[i] = {}
    for j, name in ipairs(names) do found[i][name] = values[(i - 1) * #names + j] end
  end
  return found
end

local function read_call(call, names) return read_calls({call}, names)[1] end
