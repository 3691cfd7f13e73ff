-- Whether a call is first in all its lines. A lane nobody wants has no key.
local function is_first(holders_key, holder)
  local lines = redis.call('HGET', holders_key, holder)
  if not lines then return false end
  for _, line in ipairs(cjson.decode(lines)) do
    if redis.call('LINDEX', line, 0) ~= holder then return false end
  end
  return true
end
