-- session, token, outcome, pause (ms), why: 1 when it is ended, 2 when it was before, 3 when there is no such job
local id = ARGV[1]
if redis.call('HEXISTS', jobs, id) == 0 then return 3 end
if redis.call('HGET', tokens, id) ~= ARGV[2] then return 0 end
if redis.call('HDEL', holders, id) == 0 then return 2 end
if ARGV[3] == 'done' then
  forget(id)
  return 1
end
if ARGV[3] == 'back' then
  if redis.call('HINCRBY', tries, id, -1) < 1 then redis.call('HDEL', tries, id) end
  show(id)
  return 1
end
redis.call('HSET', whys, id, ARGV[5])
if ARGV[3] == 'dead' then
  redis.call('HSET', dead, id, 1)
  redis.call('ZREM', ready, id)
  redis.call('ZREM', hidden, id)
else
  hide(id, ARGV[4])
end
return 1
