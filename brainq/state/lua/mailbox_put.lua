--[[
Put input into a turn's mailbox, once for each client_message_id. SEALED: the turn is over; it becomes a turn of its own.

KEYS   turn events mailbox receipts
ARGV   message_id item
REPLY  ACCEPTED | ALREADY receipt state | SEALED state | GONE
]]
-- @include lib/event
local state = redis.call('HGET', turn, 'state')
if not state then return {'GONE'} end
local known = redis.call('HGET', receipts, message_id)
if known then return {'ALREADY', known, state} end
if state ~= 'queued' and state ~= 'active' and state ~= 'parked' then return {'SEALED', state} end
redis.call('RPUSH', mailbox, item)
redis.call('HSET', receipts, message_id, 'accepted')
emit(turn, events, 'input.accepted', {input = message_id})
return {'ACCEPTED'}
