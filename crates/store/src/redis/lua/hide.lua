-- session, token, hidden for (ms)
local id = ARGV[1]
if redis.call('HGET', tokens, id) ~= ARGV[2] or redis.call('HEXISTS', holders, id) == 0 then return 0 end
hide(id, ARGV[3])
return 1
