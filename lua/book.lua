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
--      10 the scopes of the request, between commas
--      11 what it keeps back for others, in thousandths of each limit
--      12 the revision of the limits
--      13 how many zones follow, then each: see readZones
--         how many sets of limits follow, then each: see limitset
--         how many shared accounts follow, then each, SET:ACCOUNT (sets count
--         from 1)
--         the accounts, SET:ACCOUNT; none if the index has them
-- returns {'booked', now, version, slot, account, stepped, ruled, entry, used}
--         {'late', now, version, slot, account, stepped, ruled}   not booked: slot
--                                                  is too late
--         used: the units of the account that may have left in the longest window
--         stepped: by how much the clock was found to have stepped, and corrected
--         ruled: the account's limits, 'REVISION SET', where they are not those
--         that were given but newer; otherwise ''
--         {'differ', now, version, account, 'REVISION SET'}  not booked: the
--                                                  account has other limits of
--                                                  the same revision
--         {'lost', now, version}                   not booked: a log was lost since
--                                                  the caller last booked
--         {'ahead', now, version}                  not booked: the clock is ahead of
--                                                  what the caller reckons
--         {'costly'}                               not booked: the cost is more than
--                                                  any account's limits allow
--         {'logs'}                                 ask again with the parts of all
--                                                  logs: one is kept in another
--         {'accounts'}                             ask again with the accounts
--         {'cancelled'}                            the ID was cancelled before

local state = call('HMGET', base, 'version', 'offset', 'seen', 'careful', 'lost', 'revision')
local ahead, seen, careful = tonumber(state[2] or 0), tonumber(state[3] or 0), tonumber(state[4] or 0)
local now = clock(ARGV[1], ahead)
local id = ARGV[2]
local cost = whole(ARGV[3], 'cost', 1, 1000000000000)
local longest = ARGV[4] ~= '' and whole(ARGV[4], 'the longest wait', 0, 9223372036854776)
local reckoned = ARGV[5] ~= '' and whole(ARGV[5], 'the reckoned now', 1, 4503599627370496)
local before = ARGV[6] ~= '' and whole(ARGV[6], 'the last now', 1, 4503599627370496)
local mended = ARGV[7] ~= '' and whole(ARGV[7], 'the last loss', 0, 4503599627370496) or 0
local found = ARGV[8] ~= '' and whole(ARGV[8], 'the step', 0, 4503599627370496)
local lane = {name = '', scopes = ARGV[10], cost = cost, keep = whole(ARGV[11], 'the share kept', 0, 999)}
local revision = whole(ARGV[12], 'the revision', 0, 4503599627370496)
local first = readZones(13)
local sets = {}
for i = 1, whole(ARGV[first], 'the number of limit sets', 1, 10000) do
  sets[i] = limitset(ARGV[first + i])
end
first = first + #sets + 1

-- readMember reads SET:ACCOUNT.
local function readMember(member)
  local number, account = string.match(member or '', '^(%d+):(.+)$')
  local set = sets[tonumber(number)]
  if not set then
    bad = bad or 'ERR ration: an account has no set of limits'
  end
  return account, set
end

local shared, names, most = {}, {}, 1000000000000
for i = 1, whole(ARGV[first], 'the number of shared accounts', 0, 100) do
  local account, set = readMember(ARGV[first + i])
  if set then
    shared[i] = {account = account, set = set}
    names[i] = account
    most = math.min(most, mostOf(set, lane.scopes))
  end
end
first = first + #shared + 1
if not string.find(lane.scopes, '^[%w%._,-]*$') then
  bad = bad or 'ERR ration: a scope has letters, digits, \'-\', \'_\' and \'.\''
end
if lane.scopes ~= '' or lane.keep > 0 or #names > 0 then
  lane.name = lane.scopes .. '~' .. lane.keep .. '~' .. table.concat(names, ',')
end
local index = ARGV[9] ~= '' and base .. ':pool:' .. ARGV[9] .. (lane.name ~= '' and ':' .. lane.name or '')
if #id ~= 32 then
  bad = bad or 'ERR ration: the booking\'s ID must have 32 digits'
end
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
  return {'booked', text(now), version(), slot, account, '0', '', entry, '0'}
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
if not state[3] then
  call('PEXPIRE', base, text(DAY / 1000))
end
-- A caller that has booked before must enter that again first.
if before and lost > mended then
  return {'lost', text(now), version()}
end
local latest = longest and now + longest

-- The best account so far: {slot, charges, hole, member}.
local best
local scores = {}
local one = {name = lane.name, scopes = lane.scopes, keep = lane.keep, cost = 1}
local refusal

-- openRuled opens an account with the limits that rule: those of the highest
-- revision. Two limits of one revision are for people to decide between.
local function openRuled(account, set)
  local charge = readCharge(account, set, now)
  local theirs = charge.fields.limits
  local ours = text(revision) .. ' ' .. set.text
  if theirs and theirs ~= ours then
    local other, limits = string.match(theirs, '^(%d+) (.*)$')
    other = tonumber(other)
    if limits ~= set.text and other == revision then
      refusal = refusal or {'differ', text(now), version(), account, theirs}
      return nil
    elseif other > revision then
      ours = theirs
      if limits ~= set.text then
        charge.set, charge.ruled = limitset(limits), theirs
        if bad then
          refusal = refusal or {'differ', text(now), version(), account, theirs}
          return nil
        end
      end
    end
  end
  if theirs ~= ours then
    charge.fields.limits, charge.dirty.limits = ours, true
  end
  charge.first = string.sub(ours, 1, 2) == '0 '
  if charge.set.log and charge.fields.kind and not logs[charge.fields.kind] then
    refusal = {'logs'}
    return nil
  end
  openCharge(charge)
  if charge.dirty.limits and theirs and shape(string.match(theirs, ' (.*)')) ~= shape(set.text) then
    charge.renewed = endOf(charge)
    charge.fields.renewed, charge.dirty.renewed = text(charge.renewed), true
  end
  if charge.empty then
    local counts = tonumber(call('HGET', base, 'has:' .. account) or 0)
    if counts > 0 then
      call('HDEL', base, 'has:' .. account)
    end
    -- A log that has left every window expires, and nothing is lost by that.
    if counts > now then
      missing()
    end
  end
  return charge
end

local common, commonFrom = {}, now
for i, other in ipairs(shared) do
  common[i] = openRuled(other.account, other.set)
  if common[i] then
    commonFrom = math.max(commonFrom, pausedUntil(other.account))
    if cost > mostOf(common[i].set, lane.scopes) then
      refusal = refusal or {'costly'}
    end
  end
end
if refusal then
  return refusal
end

-- consider looks at one account. Its score in the index becomes the slot that a
-- booking of one unit would get from it if it came long ago: never more than what
-- the next booking gets, and for a free account when it became free, so that of
-- several free accounts the one that has been free the longest is taken. Of an
-- account with holes that is not known: 0.
local function consider(member)
  local account, set = readMember(member)
  if not set then
    return redis.error_reply('ERR ration: the index names a set of limits that was not given')
  end
  if cost > most or cost > mostOf(set, lane.scopes) then
    return nil
  end
  local charge = openRuled(account, set)
  if not charge or cost > mostOf(charge.set, lane.scopes) then
    return nil
  end
  local charges = {charge, unpack(common)}
  local paused = pausedUntil(account)
  local last = lastOf(charge, lane.name)
  local rule = settle({charge}, last, lane)
  local from = math.max(commonFrom, paused, careful)
  local slot = rule
  if #common > 0 or rule < from then
    slot = settle(charges, math.max(from, rule), lane)
  end
  local hole, earlier = handedBack(charges, lane, from)
  if hole then
    slot = earlier
  end
  if index then
    if charge.unsure then
      scores[member] = 0
    elseif cost == 1 then
      scores[member] = math.max(paused, rule)
    else
      scores[member] = math.max(paused, settle({charge}, last, one))
    end
  end
  if not best or slot < best.slot then
    best = {slot = slot, charges = charges, hole = hole, member = member, account = account}
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
  -- No account is free before the shared ones are.
  local soonest = #common > 0 and settle(common, commonFrom, lane) or now
  local rank, chunk = 0, 4
  repeat
    local members = call('ZRANGE', index, rank, rank + chunk - 1, 'WITHSCORES')
    for i = 1, #members, 2 do
      -- Scores are never too late: nothing behind this one is earlier.
      if best and best.slot <= math.max(soonest, tonumber(members[i + 1])) then
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
  return refusal or {'costly'}
end

local late = latest and best.slot > latest
if not late and best.slot > MODULUS + MODULUS then
  return redis.error_reply('ERR ration: the slot lies beyond the year 2255')
end
local entry, used
local charge = best.charges[1]
if not late then
  if best.hole then
    entry = take(best.charges, lane, best.hole, best.slot)
  else
    local parts = {}
    for i, each in ipairs(best.charges) do
      parts[i] = enterCharge(each, lane, best.slot, cost, 'commit')
    end
    entry = lane.name .. '\0' .. table.concat(parts)
  end
  if revision > tonumber(state[6] or 0) then
    call('HSET', base, 'revision', text(revision))
    renew(now)
  end
  for _, each in ipairs(best.charges) do
    keepCharge(each)
  end
  call('SET', base .. ':id:' .. id, text(best.slot) .. ' ' .. best.member .. ' ' .. entry, 'PX', REMEMBER)
  for _, each in ipairs(best.charges) do
    trimCharge(each)
  end
  used = leftIn(charge, now)
  if index then
    scores[best.member] = charge.unsure and 0 or
      settle({charge}, lastOf(charge, lane.name), one)
  end
end
for member, score in pairs(scores) do
  call('ZADD', index, text(score), member)
end
local ruled = charge.ruled or ''
if late then
  return {'late', text(now), version(), text(best.slot), best.account, text(stepped), ruled}
end
return {'booked', text(now), version(), text(best.slot), best.account, text(stepped), ruled, entry, text(used)}
