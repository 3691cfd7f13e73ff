-- Return fields of a hash by name, with false for each that is missing.
local function read(key, names)
  local values, found = redis.call('HMGET', key, unpack(names)), {}
  for i, name in ipairs(names) do found[name] = values[i] end
  return found
end

-- Append all items to a list, however many there are. Returns the new length.
local function push(key, items)
  local length
  for i = 1, #items, 1000 do length = redis.call('RPUSH', key, unpack(items, i, math.min(i + 999, #items))) end
  return length
end
