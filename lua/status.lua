-- status.lua: tells which accounts of a budget are paused. It writes nothing.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
-- returns {now, version, then ACCOUNT and the end of its pause, for each}

local now = clock(ARGV[1])
if bad then
  return redis.error_reply(bad)
end
local reply = {text(now), version()}
local pauses = call('ZRANGEBYSCORE', base .. ':pauses', '(' .. text(now), '+inf', 'WITHSCORES')
for i = 1, #pauses, 2 do
  reply[#reply + 1] = pauses[i]
  reply[#reply + 1] = text(tonumber(pauses[i + 1]))
end
return reply
