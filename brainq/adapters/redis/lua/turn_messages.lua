--[[
The messages of a turn that has ended, as by turn_transcript. Its calls and receipts stand still: plain commands read
them, which spares the script's copies of each field.

KEYS   turn session history
ARGV   most:n
REPLY  SAID messages...
]]
-- @include lib/said
return add_messages({'SAID'}, most)
