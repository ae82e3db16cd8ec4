-- usage.lua: tells what is used of some accounts. It writes nothing.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 how many sets of limits follow
--       then each set, 'MAX WINDOW ...'
--       then the accounts, SET:ACCOUNT (sets count from 1)
-- returns {now, then for each account: end of its pause or 0,
--          then for each of its limits: units used, when the next is free or 0}

local now = clock(ARGV[1], offset())
local sets = {}
for i = 1, whole(ARGV[2], 'the number of limit sets', 1, 10000) do
  sets[i] = limitset(ARGV[2 + i])
end
if bad then
  return redis.error_reply(bad)
end

local reply = {text(now)}
for i = 3 + #sets, #ARGV do
  local number, account = string.match(ARGV[i], '^(%d+):(.+)$')
  local set = sets[tonumber(number)]
  if not set then
    return redis.error_reply('ERR ration: an account has no set of limits')
  end
  local log = open(account, now)
  local paused = pausedUntil(account)
  reply[#reply + 1] = paused > now and text(paused) or '0'
  for _, limit in ipairs(set) do
    local units = since(log, now - limit.window)
    local free = 0
    if units > 0 then
      free = blocker(log, math.min(units, limit.max) - 1) + limit.window
    end
    reply[#reply + 1] = text(units)
    reply[#reply + 1] = text(free)
  end
end
return reply
