-- session, status, root, header, nonce, ttl, channel, id
if is_there() then
  if redis.call('HGET', heart, 'born') == ARGV[5] then return {'ok'} end
  return {'exists'}
end
redis.call('DEL', unpack(KEYS))
redis.call('HSET', heart, 'session', ARGV[1], 'status', ARGV[2], 'born', ARGV[5], 'threads', 1,
  'threads:1', ARGV[3], 'thread:' .. ARGV[3], ARGV[4], 'last:' .. ARGV[3], 0)
redis.call('PUBLISH', ARGV[7], ARGV[8] .. ' root 0')
renew(ARGV[6])
return {'ok'}
