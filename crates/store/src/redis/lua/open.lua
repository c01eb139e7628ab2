-- mode, thread, claim, holder, lease in ms, ttl
if not is_there() then return {'gone'} end
local status = redis.call('HGET', heart, 'status')
local ended = status == 'completed' or status == 'failed' or status == 'stopped'
if ARGV[1] == 'write' and ended then return {'ended', status} end
if redis.call('HEXISTS', heart, 'thread:' .. ARGV[2]) == 0 then return {'nothread', ARGV[2]} end
local token = '0'
if ARGV[1] ~= 'read' then
  local other = held(ARGV[3])
  if other then return {'busy', other} end
  token = redis.call('HGET', heart, 'lease:token') or '0'
  -- A lease that we never let go of and no other process took is the same; any other has a larger token.
  if redis.call('HGET', heart, 'lease:claim') ~= ARGV[3] then
    token = string.format('%.0f', math.max(tonumber(token) + 1, now()))
  end
  redis.call('HSET', heart, 'lease:token', token, 'lease:claim', ARGV[3], 'lease:holder', ARGV[4],
    'lease:until', string.format('%.0f', now() + tonumber(ARGV[5]) * 1000))
end
renew(ARGV[6])
-- The thread and those it goes on from.
local answer, name = {'ok', token, redis.call('HGET', heart, 'session')}, ARGV[2]
for _ = 1, 1000000 do
  local header = redis.call('HGET', heart, 'thread:' .. name)
  if not header then return {'nothread', name} end
  table.insert(answer, header)
  table.insert(answer, redis.call('HGET', heart, 'last:' .. name))
  local base = cjson.decode(header).base
  if not base then break end
  name = base.thread
end
return answer
