-- Input that no step has read is bounced; SQL has it, and it becomes turns of its own. Returns the ids.
-- @include lib/event
local function bounce_all(turn_key, events_key, mailbox_key, receipts_key)
  local bounced = {}
  while true do
    local input = redis.call('LPOP', mailbox_key)
    if not input then return bounced end
    local id = cjson.decode(input).client_message_id
    redis.call('HSET', receipts_key, id, 'bounced')
    emit(turn_key, events_key, 'input.bounced', {input = id})
    bounced[#bounced + 1] = id
  end
end
