-- digest, chunks, facts, ttl: an output gets its name once every chunk of it is there
if not is_there() then return {'gone'} end
for i = 0, tonumber(ARGV[2]) - 1 do
  if redis.call('HEXISTS', KEYS[3], ARGV[1] .. ':' .. i) == 0 then return {'again'} end
end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
renew(ARGV[4])
return {'ok'}
