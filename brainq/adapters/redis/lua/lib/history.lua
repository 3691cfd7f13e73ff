-- `history` is the turn's own from here on, where it has one. Uses the script's names: turn history.
-- @include lib/own_history
use_own_history(redis.call('HGET', turn, 'isolated'))
