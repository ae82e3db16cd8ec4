-- book.lua: enters one booking on the account that can take it first.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the booking's ID, 32 hexadecimal digits
--       3 cost, in units
--       4 the longest wait, in microseconds; '' for no bound
--       5 now as the caller reckons it from earlier answers; '' if it has none
--       6 the now of the caller's last booking; '' if it has none
--       7 the instant of the last loss that the caller has mended; '' if none
--       8 by how much the caller found the server's clock to be ahead; '' if it
--         has not compared
--       9 the digest of the accounts' index; '' for a single account
--      10 how many sets of limits follow
--       then each set, 'MAX WINDOW ...'
--       then the accounts, SET:ACCOUNT (sets count from 1); none if the index
--       has them
-- returns {'booked', now, version, slot, account, stepped, entry, used}
--         {'late', now, version, slot, account, stepped}   not booked: slot is
--                                                  too late
--         used: the units of the account that have left in the longest window
--         stepped: by how much the clock was found to have stepped, and corrected
--         {'lost', now, version}                   not booked: a log was lost since
--                                                  the caller last booked
--         {'ahead', now, version}                  not booked: the clock is ahead of
--                                                  what the caller reckons
--         {'accounts'}                             ask again with the accounts
--         {'cancelled'}                            the ID was cancelled before

local state = call('HMGET', base, 'version', 'offset', 'seen', 'careful', 'lost')
local ahead, seen, careful = tonumber(state[2] or 0), tonumber(state[3] or 0), tonumber(state[4] or 0)
local now = clock(ARGV[1], ahead)
local id = ARGV[2]
local cost = whole(ARGV[3], 'cost', 1, 1000000000000)
local longest = ARGV[4] ~= '' and whole(ARGV[4], 'the longest wait', 0, 9223372036854776)
local reckoned = ARGV[5] ~= '' and whole(ARGV[5], 'the reckoned now', 1, 4503599627370496)
local before = ARGV[6] ~= '' and whole(ARGV[6], 'the last now', 1, 4503599627370496)
local mended = ARGV[7] ~= '' and whole(ARGV[7], 'the last loss', 0, 4503599627370496) or 0
local found = ARGV[8] ~= '' and whole(ARGV[8], 'the step', 0, 4503599627370496)
local index = ARGV[9] ~= '' and base .. ':pool:' .. ARGV[9]
local sets = {}
for i = 1, whole(ARGV[10], 'the number of limit sets', 1, 10000) do
  sets[i] = limitset(ARGV[10 + i])
end
if #id ~= 32 then
  bad = bad or 'ERR ration: the booking\'s ID must have 32 digits'
end
local first = 11 + #sets
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
  call('HSET', base, 'seen', text(math.max(now, seen)))
  return {'booked', text(now), version(), slot, account, '0', entry, '0'}
end

-- The server's clock may step. Back, all would wait for it to catch up: time
-- stands still instead, as every window then only gets longer. Forward, logs
-- would seem to have left their windows: if the caller's clock has not moved so
-- far, and no other caller has seen such a time, the server's is put back. Two
-- clocks drift apart by less than a thousandth. A question that was long on its
-- way looks the same, so the caller compares again when it has the answer.
-- A caller that gives a now of its own and reckons none means what it says.
local stepped = 0
if now < seen - STEP and (reckoned or ARGV[1] == '') then
  stepped = seen - now
elseif reckoned and seen <= reckoned + STEP and
  now > reckoned + STEP + math.max(reckoned - seen, 0) / 1000 then
  if not found then
    return {'ahead', text(now), version()}
  end
  stepped = -found
end
if stepped ~= 0 then
  now = now + stepped
  call('HSET', base, 'offset', text(ahead + stepped))
end
-- One that slips back by less stands still as well: a slot that was handed back
-- and has passed would be offered again, when others are booked without it.
if now < seen and (reckoned or ARGV[1] == '') then
  now = seen
end

-- missing notes that a log is gone. Until the workers have entered again what
-- they booked nothing leaves.
local lost = tonumber(state[5] or 0)
local function missing()
  lost, careful = now, now + CAREFUL
  call('HSET', base, 'lost', text(lost), 'careful', text(careful))
  renew(now)
end
if before and seen < before then
  missing()
elseif not state[1] then
  -- A new budget, or one that was lost whole: only its workers know.
  lost = now
  call('HSET', base, 'lost', text(lost))
  renew(now)
end
call('HSET', base, 'seen', text(math.max(now, seen, before or 0)))
if call('PTTL', base) < 0 then
  call('PEXPIRE', base, text(DAY / 1000))
end
-- A caller that has booked before must enter that again first.
if before and lost > mended then
  return {'lost', text(now), version()}
end
local latest = longest and now + longest

-- The best account so far: {slot, log, set, hole, member}.
local best
local scores = {}

-- consider looks at one account. Its score in the index becomes the slot that a
-- booking of one unit would get if it came long ago: never more than what the
-- next booking gets, and for a free account when it became free, so that of
-- several free accounts the one that has been free the longest is taken. Of an
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
  if log.size == 0 then
    local counts = tonumber(call('HGET', base, 'has:' .. account) or 0)
    if counts > 0 then
      call('HDEL', base, 'has:' .. account)
    end
    -- A log that has left every window expires, and nothing is lost by that.
    if counts > now then
      missing()
    end
  end
  local paused = pausedUntil(account)
  local from = math.max(now, paused, careful)
  local unclamped = earliest(log, set, cost)
  local slot = math.max(from, unclamped)
  local hole, earlier = handedBack(log, cost, from)
  if hole then
    slot = earlier
  end
  if index then
    if log.handedBack then
      scores[member] = 0
    else
      scores[member] = math.max(paused, cost == 1 and unclamped or earliest(log, set, 1))
    end
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
    -- Before all that could still fail.
    call('PEXPIRE', index, text(DAY / 1000))
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
  call('PEXPIRE', index, text(DAY / 1000))
end
if before and lost > mended then
  return {'lost', text(now), version()}
end
if not best then
  return redis.error_reply('ERR ration: cost ' .. text(cost) .. ' is more than any account can take')
end

local late = latest and best.slot > latest
if not late and best.slot > MODULUS + MODULUS then
  return redis.error_reply('ERR ration: the slot lies beyond the year 2255')
end
local entry, used
if not late then
  local log, set = best.log, best.set
  if best.hole then
    entry = take(log, best.hole, best.slot, cost)
  else
    entry = enter(log, best.slot, cost)
    call('HSET', base, 'has:' .. best.account, text(log.last + set.window))
  end
  -- The expiry comes before all that could still fail.
  keep(log, set, now)
  call('SET', base .. ':id:' .. id, text(best.slot) .. ' ' .. best.member .. ' ' .. entry, 'PX', REMEMBER)
  trim(log, set, now)
  used = since(log, now - set.window) - (log.last > now and since(log, now) or 0)
  if index then
    scores[best.member] = log.handedBack and 0 or earliest(log, set, 1)
  end
end
for member, score in pairs(scores) do
  call('ZADD', index, text(score), member)
end
if late then
  return {'late', text(now), version(), text(best.slot), best.account, text(stepped)}
end
return {'booked', text(now), version(), text(best.slot), best.account, text(stepped), entry, text(used)}
