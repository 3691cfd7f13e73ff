-- `inputs`, all that the mailbox holds, are bounced; SQL has them, and they become turns of their own. Returns their ids.
-- @include lib/event
local function bounce_all(inputs, events_key, mailbox_key, receipts_key)
  local bounced = {}
  if #inputs > 0 then redis.call('DEL', mailbox_key) end
  for _, input in ipairs(inputs) do
    local id = cjson.decode(input).client_message_id
    redis.call('HSET', receipts_key, id, 'bounced')
    emit(events_key, 'input.bounced', {input = id})
    bounced[#bounced + 1] = id
  end
  return bounced
end
