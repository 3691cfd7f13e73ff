-- How long a live owner may take to end its turn after the deadline, in ms. The turn is then taken from it.
local OVERDUE_MS = 2000
