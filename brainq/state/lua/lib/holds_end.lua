-- The reason of a hold that outlived its timeout and whose policy is to cancel the turn; nil where there is none.
-- Uses the script's names: turn, and lib/now.
local function cancelling_hold()
  local text = redis.call('HGET', turn, 'holds')
  if not text or text == '' then return nil end
  for _, hold in pairs(cjson.decode(text)) do
    if hold.policy == 'cancel' and now >= hold.ends then
      return 'a hold was not released in time' .. (hold.reason ~= '' and ': ' .. hold.reason or '')
    end
  end
  return nil
end
