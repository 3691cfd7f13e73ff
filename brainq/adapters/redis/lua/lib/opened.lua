-- What claims an opened call, the next step of its turn, or the first finalizer step for the thread that runs the script. The scripts
-- whose thread may continue set them (lib/stay); elsewhere they are nil, and doorbells are rung.
local claim_opened_call, claim_next_step, claim_first_final
