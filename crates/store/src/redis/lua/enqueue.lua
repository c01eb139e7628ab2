-- session, key, job, nonce, stage, tries, why it came back where it did
local id, key = ARGV[1], ARGV[2]
if redis.call('HGET', nonces, id) == ARGV[4] then return 1 end
if redis.call('HEXISTS', jobs, id) == 1 or redis.call('HEXISTS', keys, key) == 1 then return 0 end
local last = redis.call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2] or 0
redis.call('ZADD', line, last + 1, id)
if ARGV[5] == 'dead' then redis.call('HSET', dead, id, 1) else redis.call('ZADD', ready, last + 1, id) end
redis.call('HSET', jobs, id, ARGV[3])
redis.call('HSET', keys, key, id)
if ARGV[6] ~= '0' then redis.call('HSET', tries, id, ARGV[6]) end
if ARGV[7] then redis.call('HSET', whys, id, ARGV[7]) end
redis.call('HSET', nonces, id, ARGV[4], id .. ' key', key)
return 1
