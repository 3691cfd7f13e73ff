-- A review turn has a history of its own: from here on `history` is that one. Uses the script's names: turn history.
local session_history = history
local isolated = redis.call('HGET', turn, 'isolated') == '1'
if isolated then history = turn .. ':history' end
