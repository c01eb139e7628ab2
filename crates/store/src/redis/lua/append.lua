-- token, thread, after, nonce, ttl, channel, session, then head and line of each row
if not is_there() then return {'gone'} end
if redis.call('HGET', heart, 'lease:token') ~= ARGV[1] then return {'taken'} end
local name, after, rows = ARGV[2], tonumber(ARGV[3]), (#ARGV - 7) / 2
local last = tonumber(redis.call('HGET', heart, 'last:' .. name) or '-1')
if last < 0 then return {'nothread', name} end
if last ~= after then
  if redis.call('HGET', heart, 'nonce:' .. name) == ARGV[4] then return {'ok'} end
  -- What stands there byte for byte was appended by a call whose answer was lost.
  if rows == 0 or last ~= after + rows then return {'moved', last} end
  for i = 1, rows do
    if redis.call('HGET', heart, name .. '@' .. (after + i)) ~= ARGV[7 + 2 * i] then return {'moved', last} end
  end
  return {'ok'}
end
for i = 1, rows do
  local seq = string.format('%.0f', after + i)
  redis.call('HSET', heart, name .. '#' .. seq, ARGV[6 + 2 * i], name .. '@' .. seq, ARGV[7 + 2 * i])
end
if rows > 0 then
  local upto = string.format('%.0f', after + rows)
  redis.call('HSET', heart, 'last:' .. name, upto, 'nonce:' .. name, ARGV[4])
  redis.call('PUBLISH', ARGV[6], ARGV[7] .. ' ' .. name .. ' ' .. upto)
end
renew(ARGV[5])
return {'ok'}
