-- What a turn waits for (`waits_for`) while its process in quarantine has no place for it.
local QUARANTINE = 'a place in quarantine'
