-- How long a live owner may take to end its turn itself past its deadline, in ms. Then the turn is taken from it.
local OVERDUE_MS = 2000
