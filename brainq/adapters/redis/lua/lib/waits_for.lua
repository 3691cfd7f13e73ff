-- The text in `waits_for` while the turn waits for a place in quarantine.
local QUARANTINE = 'a place in quarantine'
