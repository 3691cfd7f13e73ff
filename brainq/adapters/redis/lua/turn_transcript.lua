--[[
Return a turn's transcript: its messages, as far as its history still has them, at most the `most` newest (which may
include some of other turns), its calls, and the receipts of its inputs.

KEYS   turn session history trace receipts
ARGV   most:n
REPLY  SAID trace:hash receipts:hash messages...
]]
-- @include lib/messages_of_turn
return add_messages({'SAID', redis.call('HGETALL', trace), redis.call('HGETALL', receipts)}, most)
