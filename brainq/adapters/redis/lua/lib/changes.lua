-- Store the changes of a call for the turn's diff. `changed` is a JSON array of rows, or empty. Uses the script's name:
-- changes.
local function add_changes(changed)
  if changed == '' then return end
  for _, row in ipairs(cjson.decode(changed)) do redis.call('RPUSH', changes, row) end
end
