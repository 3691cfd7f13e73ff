--[[
Return the messages of a turn that has ended, as turn_transcript does. Its calls and receipts no longer change, so they
are read with plain commands, which saves the copies that a script makes of each field.

KEYS   turn session history
ARGV   most:n
REPLY  SAID messages...
]]
-- @include lib/messages_of_turn
return add_messages({'SAID'}, most)
