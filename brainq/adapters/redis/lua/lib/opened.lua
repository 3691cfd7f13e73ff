-- Functions that claim an opened call, the turn's next step, or the first finalizer step for the thread that runs the script.
-- Scripts whose thread may continue set them (lib/stay). In other scripts they are nil, and doorbells are rung.
local claim_opened_call, claim_next_step, claim_first_final
