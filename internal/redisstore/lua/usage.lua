-- usage.lua: tells what is used of some accounts. It writes nothing.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 which limit of the first account is asked for first: 1 for all
--       3 how many zones follow, then each: see readZones
--         how many sets of limits follow, then each: see limitset
--         the accounts, SET:ACCOUNT (sets count from 1)
-- returns numbers: now, then for each account: the end of its pause or 0, the units that
--         were added to it, less those that were taken back;
--         then for each of its limits: units used, units booked ahead, when the next is
--         free or 0;
--         as far as it came: what is left out is asked for again

-- After so many commands a script leaves the rest to another.
local ENOUGH = 300

local now = clock(ARGV[1], readState().offset)
local sets = {}
local skip = whole(ARGV[2], 'the first limit', 1, 1000) - 1
local first = readZones(4, ARGV[3])
for i = 1, whole(ARGV[first], 'the number of limit sets', 1, 10000) do
  sets[i] = limitset(ARGV[first + i])
end
if bad then
  return redis.error_reply(bad)
end

local reply, all = {encode(now)}, pausedUntil('*')
for i = first + #sets + 1, #ARGV do
  local number, accountID = string.match(ARGV[i], '^(%d+):(.+)$')
  local set = sets[tonumber(number)]
  if not set then
    return redis.error_reply('ERR ration: an account has no set of limits')
  end
  local account = readAccount(accountID, set, now)
  openAccount(account)
  local paused = math.max(pausedUntil(accountID), all)
  reply[#reply + 1] = encode(paused > now and paused or 0) .. encode(account.total - tonumber(account.fields.back or 0))
  for at, m in ipairs(account.limits) do
    if at > skip then
      local units, ahead, free
      if counters[m.code] then
        units, ahead, free = counters[m.code].usage(m, now)
      else
        units, ahead, free = logUsage(viewFor(account, m.scope), now, m.max, m.window, account.edge)
      end
      reply[#reply + 1] = encode(units) .. encode(ahead) .. encode(free)
      if work > ENOUGH then
        return table.concat(reply)
      end
    end
  end
  skip = 0
end
return table.concat(reply)
