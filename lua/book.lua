-- book.lua: enters one booking on the account that can take it first.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the booking's ID, 32 hexadecimal digits
--       3 cost, in units
--       4 the longest wait, in microseconds; '' for no bound
--       5 the digest of the accounts' index; '' for a single account
--       6 how many sets of limits follow
--       then each set, 'MAX WINDOW ...'
--       then the accounts, SET:ACCOUNT (sets count from 1); none if the index
--       has them
-- returns {'booked', now, version, slot, account, entry}
--         {'late', now, version, slot, account}    not booked: slot is too late
--         {'accounts'}                             ask again with the accounts
--         {'cancelled'}                            the ID was cancelled before

local now = clock(ARGV[1])
local id = ARGV[2]
local cost = whole(ARGV[3], 'cost', 1, 1000000000000)
local latest
if ARGV[4] ~= '' then
  latest = now + whole(ARGV[4], 'the longest wait', 0, 400 * DAY)
end
local index = ARGV[5] ~= '' and base .. ':pool:' .. ARGV[5]
local sets = {}
for i = 1, whole(ARGV[6], 'the number of limit sets', 1, 10000) do
  sets[i] = limitset(ARGV[6 + i])
end
if #id ~= 32 then
  bad = bad or 'ERR ration: the booking\'s ID must have 32 digits'
end
local first = 7 + #sets
if not index and #ARGV ~= first then
  bad = bad or 'ERR ration: exactly one account goes without an index'
end
if bad then
  return redis.error_reply(bad)
end

local known = call('GET', base .. ':id:' .. id)
if known == 'cancelled' then
  return {'cancelled'}
elseif known then
  local slot, account, entry = string.match(known, '^(%d+) %d+:(%S+) (.*)$')
  return {'booked', text(now), version(), slot, account, entry}
end

-- The best account so far: {slot, log, set, hole, member}.
local best
local scores = {}

-- consider looks at one account. Its score in the index becomes the slot that a
-- booking of one unit would get if it came long ago: never more than what the
-- next booking gets, and for a free account that of its last booking, so that
-- of several free accounts the one that has rested longest is taken. Of an
-- account with holes that is not known: 0.
local function consider(member)
  local number, account = string.match(member, '^(%d+):(.+)$')
  local set = sets[tonumber(number)]
  if not set then
    return redis.error_reply('ERR ration: the index names a set of limits that was not given')
  end
  if cost > set.most then
    return nil
  end
  local log = open(account, now)
  local paused = pausedUntil(account)
  local from = math.max(now, paused)
  local unclamped = earliest(log, set, cost)
  local slot = math.max(from, unclamped)
  local hole, earlier = handedBack(log, cost, from)
  if hole then
    slot = earlier
  end
  if index then
    if log.handedBack then
      scores[member] = 0
    elseif cost == 1 then
      scores[member] = unclamped
    else
      scores[member] = earliest(log, set, 1)
    end
    scores[member] = math.max(scores[member], log.handedBack and 0 or paused)
  end
  if not best or slot < best.slot then
    best = {slot = slot, log = log, set = set, hole = hole, member = member, account = account}
  end
  return nil
end

if not index then
  local failed = consider(ARGV[first])
  if failed then
    return failed
  end
else
  if first <= #ARGV then
    for i = first, #ARGV do
      call('ZADD', index, 'NX', 0, ARGV[i])
    end
  elseif call('EXISTS', index) == 0 then
    return {'accounts'}
  end
  local rank, chunk = 0, 4
  repeat
    local members = call('ZRANGE', index, rank, rank + chunk - 1, 'WITHSCORES')
    for i = 1, #members, 2 do
      -- Scores are never too late: nothing behind this one is earlier.
      if best and best.slot <= math.max(now, tonumber(members[i + 1])) then
        members = {}
        break
      end
      local failed = consider(members[i])
      if failed then
        return failed
      end
    end
    rank, chunk = rank + chunk, 64
  until #members == 0
  call('PEXPIRE', index, text(400 * DAY / 1000))
end
if not best then
  return redis.error_reply('ERR ration: cost ' .. text(cost) .. ' is more than any account can take')
end

local late = latest and best.slot > latest
local entry
if not late then
  local log, set = best.log, best.set
  if best.hole then
    entry = take(log, best.hole, best.slot, cost)
  else
    entry = enter(log, best.slot, cost)
  end
  -- The expiry comes before all that could still fail.
  keep(log, set, now)
  call('SET', base .. ':id:' .. id, text(best.slot) .. ' ' .. best.member .. ' ' .. entry, 'PX', REMEMBER)
  trim(log, set, now)
  if index then
    scores[best.member] = log.handedBack and 0 or earliest(log, set, 1)
  end
end
for member, score in pairs(scores) do
  call('ZADD', index, text(score), member)
end
if late then
  return {'late', text(now), version(), text(best.slot), best.account}
end
return {'booked', text(now), version(), text(best.slot), best.account, entry}
