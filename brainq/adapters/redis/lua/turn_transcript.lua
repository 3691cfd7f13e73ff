--[[
A turn's transcript: its messages, as far as its history still holds them, at most the `most` newest (some of
other turns may be among them), its calls and its inputs' receipts.

KEYS   turn session history trace receipts
ARGV   most:n
REPLY  SAID trace:hash receipts:hash messages...
]]
-- @include lib/said
return add_messages({'SAID', redis.call('HGETALL', trace), redis.call('HGETALL', receipts)}, most)
