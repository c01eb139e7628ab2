-- holder, hidden for (ms), nonce
local function answer(id)
  return {'ok', redis.call('HGET', jobs, id), redis.call('HGET', tokens, id), redis.call('HGET', tries, id),
    redis.call('HGET', whys, id)}
end
-- A call whose answer was lost has its job already.
local had = redis.call('HGET', nonces, 'take ' .. ARGV[3])
if had and is_held(had) then return answer(had) end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', hidden, '-inf', text(now()))) do show(id) end
local id = redis.call('ZRANGE', ready, 0, 0)[1]
if not id then return {'none'} end
forget_taking(id)
redis.call('HSET', nonces, id .. ' take', ARGV[3], 'take ' .. ARGV[3], id)
redis.call('HSET', tokens, id, redis.call('HINCRBY', tokens, '', 1))
redis.call('HSET', holders, id, ARGV[1])
redis.call('HINCRBY', tries, id, 1)
hide(id, ARGV[2])
return answer(id)
