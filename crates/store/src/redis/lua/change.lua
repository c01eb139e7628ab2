-- old row, new row, status, nonce, ttl, channel, session, '1' when no process may be writing, claim
if not is_there() then return {'gone'} end
-- The last few calls: others may come between one whose answer was lost and its repetition.
local calls = {ARGV[4]}
for nonce in string.gmatch(redis.call('HGET', heart, 'changed') or '', '%S+') do
  if nonce == ARGV[4] then return {'ok'} end
  if #calls < 16 then table.insert(calls, nonce) end
end
if ARGV[8] == '1' then
  local other = held(ARGV[9])
  if other then return {'busy', other} end
end
local row = redis.call('HGET', heart, 'session')
if row ~= ARGV[1] then return {'again', row} end
redis.call('HSET', heart, 'session', ARGV[2], 'status', ARGV[3], 'changed', table.concat(calls, ' '))
redis.call('PUBLISH', ARGV[6], ARGV[7] .. ' root 0')
renew(ARGV[5])
return {'ok'}
