-- token
if redis.call('HGET', heart, 'lease:token') == ARGV[1] then
  redis.call('HDEL', heart, 'lease:until', 'lease:claim', 'lease:holder')
end
return {'ok'}
