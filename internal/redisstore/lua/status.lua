-- status.lua: tells what the callers of a budget must know beside their bookings.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the worker that asks, which is then counted for a minute; '' for none
-- returns {now, version, when a log was last found missing or 0, how many
--          workers there are, the highest revision, then ACCOUNT and the end of its pause, for each}

local now = clock(ARGV[1], offset())
if bad then
  return redis.error_reply(bad)
end
local workers = base .. ':workers'
if ARGV[2] ~= '' then
  call('ZADD', workers, text(now), ARGV[2])
  call('ZREMRANGEBYSCORE', workers, '-inf', '(' .. text(now - GONE))
  call('PEXPIRE', workers, text(2 * GONE / 1000))
end
local reply = {text(now), version(), call('HGET', base, 'lost') or '0', text(call('ZCARD', workers)),
  call('HGET', base, 'revision') or '0'}
local pauses = call('ZRANGEBYSCORE', base .. ':pauses', '(' .. text(now), '+inf', 'WITHSCORES')
for i = 1, #pauses, 2 do
  reply[#reply + 1] = pauses[i]
  reply[#reply + 1] = text(tonumber(pauses[i + 1]))
end
return reply
