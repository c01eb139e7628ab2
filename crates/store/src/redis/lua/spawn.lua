-- thread, header, nonce, ttl, base seq, base thread or '', parent thread or '', channel, session
if not is_there() then return {'gone'} end
local name = ARGV[1]
if redis.call('HEXISTS', heart, 'thread:' .. name) == 1 then
  if redis.call('HGET', heart, 'nonce:' .. name) == ARGV[3] then return {'ok'} end
  return {'exists'}
end
for i = 6, 7 do
  if ARGV[i] ~= '' and redis.call('HEXISTS', heart, 'thread:' .. ARGV[i]) == 0 then return {'nothread', ARGV[i]} end
end
if ARGV[6] ~= '' and tonumber(ARGV[5]) > tonumber(redis.call('HGET', heart, 'last:' .. ARGV[6])) then
  return {'early'}
end
local n = redis.call('HINCRBY', heart, 'threads', 1)
redis.call('HSET', heart, 'threads:' .. n, name, 'thread:' .. name, ARGV[2], 'last:' .. name, ARGV[5],
  'nonce:' .. name, ARGV[3])
redis.call('PUBLISH', ARGV[8], ARGV[9] .. ' ' .. name .. ' ' .. ARGV[5])
renew(ARGV[4])
return {'ok'}
