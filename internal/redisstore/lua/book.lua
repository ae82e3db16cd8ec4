-- book.lua: records bookings, each on the account that can take it first.
--
-- ARGV  1 seven numbers of 8 bytes each, most significant byte first, 0 for none:
--         the number of the call in its session; a nonce; now, in microseconds,
--         for the server's clock; now as the caller reckons it from earlier
--         answers; the now of the caller's last booking; the instant of the last
--         loss that the caller has recovered; by how much the caller found the
--         server's clock to be ahead
--         then the bookings, in order: for those of one cost 'U', how many they are in
--         2 bytes, the cost in 6, and the longest wait in microseconds in 8, of
--         which 2^52 is no bound. 'D' if not all wait equally long: the longest
--         wait is the least of theirs, and those of each follow, in 8 bytes
--       2 the field of the session, s: and 16 bytes: session.lua
--       3 'INDEX EXCLUDED SETS ZONES SHARED RESERVE SCOPES REVISION SET', in one argument as
--         Redis takes its time for each: the digest of the accounts' index, empty for a
--         single account; between commas the accounts of it that must not be charged; how
--         many sets of limits, zones and shared accounts there are; what the bookings keep
--         back for others, in thousandths of each limit; the scopes of the requests, between
--         commas; the revision of the limits; and the first set: see limitset
--         then each zone: see readZones
--         each other set
--         each shared account, SET:ACCOUNT (sets count from 1)
--         the account, if it is a single one, which has the first set; or, nothing if the
--         index has them, or one of
--           'part', and some of the accounts, which are put aside
--           'all N', and the rest of the N accounts, with which the index is made
--           'behind SCORE', the member of that score behind which a search goes on,
--           the member to look at before, or '', and the member that was booked last
--           when the search began, or ''
-- returns the number of the call and the nonce, and numbers: now, the version, by how
--         much the clock was found to have stepped, and corrected, plus 2^52, or 0; and
--         the units of the account that was booked last which may have left in its longest
--         window, or 0 if that was not looked at. Then records, for bookings in their order,
--         as many as were answered:
--
--         kind     'B' booked; 'L' not booked: the slot is too late; 'C' not booked: the
--                  cost is more than any account's limits allow; 'D' not booked: the
--                  account has other limits of the same revision; 'W' not booked: a log was
--                  lost, so ask again at the slot; 'N' none was answered
--         count    2 bytes: how many have this answer
--         slot     8 bytes
--         before   7 bytes: what names the first one's entry, if there is no entry
--         lengths  2 bytes each: of what follows
--         account
--         effective  the account's limits, 'REVISION SET', where they are not those
--                  that were given but newer, or the others of the same revision
--         entry    the first one's: each other's begins where the one before it ends;
--                  '' for that of a single queue of a SlidingLog, see account.lua
--
--         or one record of kind 'N', which has in place of the account
--         'lost'      a log was lost since the caller last booked
--         'ahead'     the clock is ahead of what the caller reckons
--         'logs'      ask again with the parts of all logs: one is kept in another
--         'accounts'  ask again with the accounts
--         'rest'      ask again with more of them
--         'again'     the search is not at its end: ask again with the arguments that
--                     stand in place of effective, with a zero between two
--         'stale'     the call is not its session's next; now and the version are 0

-- After so many commands a script leaves the rest to another, and after so many
-- microseconds, where the clock tells.
local ENOUGH, LONG = 300, 2000
-- So many sets of limits are read before all else.
local READ = 64

if #ARGV[1] < 56 or #ARGV[2] ~= 18 then
  return redis.error_reply('ERR ration: a booking begins with seven numbers, and a session of 18 bytes')
end
local known = call('HMGET', base, ARGV[2], 'state', 'revision')
local record, numbered = known[1], string.sub(ARGV[1], 1, 16)

-- none spells out why no booking is answered.
local function none(why, now, number, arguments)
  return numbered .. struct.pack('>I8I8I8I8c1I2I8I7I2I2I2', now, number, 0, 0, 'N', 1, 0, 0, #why, #arguments, 0) ..
    why .. arguments
end

local again = answered(record, numbered)
if again then
  return again == 'stale' and none('stale', 0, 0, '') or again
end
local given, reckoned, before, recovered, found = struct.unpack('>I8I8I8I8I8', ARGV[1], 17)
for _, instant in ipairs({given, reckoned, before, recovered, found}) do
  among(instant, 'an instant', 0, 4503599627370496)
end
local state = readState(known[2])
local ahead, seen = state.offset, state.seen
local highest = tonumber(known[3] or 0)
local now = given > 0 and given + ahead or clock('', ahead)
local digest, others, setCount, zoneCount, sharedCount, reserve, scopes, revision, firstSet =
  string.match(ARGV[3] or '',
  '^(%x*) ([%w_,-]*) (%d+) (%d+) (%d+) (%d+) ([%w%._,-]*) (%d+) (.*)$')
if not digest then
  return redis.error_reply('ERR ration: a booking tells of its accounts in nine parts')
end
local queue = {name = '', scopes = scopes, reserve = whole(reserve, 'the share kept', 0, 999)}
revision = whole(revision, 'the revision', 0, 4503599627370496)
setCount = whole(setCount, 'the number of limit sets', 1, 10000)
local first = readZones(4, zoneCount)
local sets, behindFirst = {}, first - 2
local function setOf(number)
  if not sets[number] and number and number >= 1 and number <= setCount then
    sets[number] = limitset(number == 1 and firstSet or ARGV[behindFirst + number])
  end
  return sets[number]
end
-- Where there are more, those of others than are needed are not read at all.
for i = 1, math.min(setCount, READ) do
  setOf(i)
end
first = first + setCount - 1
reckoned, before, found = reckoned > 0 and reckoned, before > 0 and before, found > 0 and found

-- The costs of the bookings, and their longest waits.
local costs, waits = {}, {}
local at = 57
while at + 16 <= #ARGV[1] do
  local kind, count, cost, longest = struct.unpack('>c1I2I6I8', ARGV[1], at)
  at = at + 17
  if (kind ~= 'U' and kind ~= 'D') or (kind == 'D' and at + 8 * count - 1 > #ARGV[1]) then
    break
  end
  among(cost, 'a cost', 1, COSTLIEST)
  for i = 1, count do
    local patience = kind == 'U' and longest or struct.unpack('>I8', ARGV[1], at + 8 * (i - 1))
    costs[#costs + 1], waits[#waits + 1] = cost, among(patience, 'the longest wait', 0, 4503599627370497)
  end
  at = at + (kind == 'D' and 8 * count or 0)
end
if at ~= #ARGV[1] + 1 or #costs == 0 or #costs > 1024 then
  bad = bad or 'ERR ration: there must be from 1 to 1024 bookings, of 17 bytes and more'
end

-- readMember reads SET:ACCOUNT.
local function readMember(member)
  local number, accountID = string.match(member or '', '^(%d+):(.+)$')
  local set = number and setOf(tonumber(number))
  if not set then
    bad = bad or 'ERR ration: an account has no set of limits'
  end
  return accountID, set
end

local shared, names, most = {}, {}, COSTLIEST
for i = 1, whole(sharedCount, 'the number of shared accounts', 0, 100) do
  local accountID, set = readMember(ARGV[first + i - 1])
  if set then
    shared[i] = {accountID = accountID, set = set}
    names[i] = accountID
    most = math.min(most, mostOf(set, queue.scopes))
  end
end
first = first + #shared
if queue.scopes ~= '' or queue.reserve > 0 or #names > 0 then
  queue.name = queue.scopes .. '~' .. queue.reserve .. '~' .. table.concat(names, ',')
end
local index, excluded = false, {}
if digest ~= '' then
  index = base .. ':pool:' .. digest .. (queue.name ~= '' and ':' .. queue.name or '')
  for accountID in string.gmatch(others, '[^,]+') do
    excluded[accountID] = true
  end
end
if not index and (#ARGV ~= first or ARGV[first] == '') then
  bad = bad or 'ERR ration: exactly one account goes without an index'
end
-- What is told of the index.
local told, members, behind = '', first + 1, nil
if index and ARGV[first] then
  local number
  told, number = string.match(ARGV[first], '^(%l+) ?(%d*)$')
  if told == 'behind' then
    number = whole(number, 'a score', 0, MODULUS + MODULUS)
    behind = {score = number, member = ARGV[first + 1], before = ARGV[first + 2], newest = ARGV[first + 3]}
    if #ARGV ~= first + 3 then
      bad = bad or 'ERR ration: a search goes on with a score and three members'
    end
  elseif told == 'all' then
    number = whole(number, 'the number of accounts', 1, 1000000)
  elseif told ~= 'part' then
    bad = bad or 'ERR ration: what is told of an index is \'part\', \'all N\' or \'behind SCORE\''
  end
  behind = behind or {count = number}
elseif not index then
  members = first + 1
end
for i = members, #ARGV do
  local number = string.match(ARGV[i], '^(%d+):.+$')
  number = number and tonumber(number)
  if (not number or number < 1 or number > setCount) and (told ~= 'behind' or i == members or ARGV[i] ~= '') then
    bad = bad or 'ERR ration: an account has no set of limits'
  end
end
if bad then
  return redis.error_reply(bad)
end

-- The server's clock may step. Back, all would wait for it to catch up: time
-- stands still instead, as every window then only gets longer. Forward, logs
-- would seem to have left their windows: if the caller's clock has not moved so
-- far, and no other caller has seen such a time, the server's is put back. Two
-- clocks drift apart by less than a thousandth. A question that was long on its
-- way looks the same, so the caller compares again when it has the answer.
-- A caller that gives a now of its own and reckons none means what it says.
local stepped = 0
if now < seen - STEP and (reckoned or given == 0) then
  stepped = seen - now
elseif reckoned and seen <= reckoned + STEP and
  now > reckoned + STEP + math.max(reckoned - seen, 0) / 1000 then
  if not found then
    return none('ahead', now, state.version, '')
  end
  stepped = -found
end
if stepped ~= 0 then
  now = now + stepped
  state.offset = ahead + stepped
  writeState()
end
-- One that slips back by less stands still as well.
if now < seen and (reckoned or given == 0) then
  now = seen
end

-- missing notes that a log is gone. Until the workers have recorded again what they booked
-- nothing else is booked.
local function missing()
  -- What was booked up to then was booked before.
  state.lost, state.graceEnds = math.max(now, seen + 1), now + GRACE
  renew(now)
  -- An old dump, or another node: what changed before may have been lost as well.
  call('HSET', base, 'began', text(state.version))
end
if before and seen < before then
  missing()
elseif not known[2] then
  -- A new budget, or one that was lost whole: only its workers know.
  state.lost = now
  renew(now)
end
state.seen = math.max(now, seen, before or 0)
if seen == 0 then
  writeState()
  call('PEXPIRE', base, text(DAY / 1000))
end
noPauses = now >= state.pausesEnd
-- A caller that has booked before must enter that again first.
if before and state.lost > recovered then
  writeState()
  return none('lost', now, state.version, '')
end

-- answer spells out what became of some bookings.
local answers = {}
local function answer(kind, count, slot, accountID, effective, entry)
  answers[#answers + 1] = struct.pack('>c1I2I8I7I2I2I2', kind, count, slot, 0, #accountID, #effective, #entry) ..
    accountID .. effective .. entry
end

-- The booking under way: the best account so far, {slot, capacity, accounts, hole, member};
-- the scores that the index is to have; and why there is none.
local cost, best, scores, refusal
-- The member of the index that was booked last; '': none was.
local newestField = index and 'i:' .. string.sub(index, #base + 7)
local newest = index and string.sub(call('HGET', base, newestField) or '', 9) or ''
-- The accounts that are open; those of them that were booked, in that order; and the one
-- that was charged last.
local opened, booked, newestAccount = {}, {}, nil
local one = {name = queue.name, scopes = queue.scopes, reserve = queue.reserve, cost = 1}

-- openEffective opens an account with the limits that rule: those of the highest
-- revision. Two limits of one revision are for people to decide between.
local function openEffective(accountID, set)
  local account = opened[accountID]
  if account then
    return account
  end
  account = readAccount(accountID, set, now)
  local theirs = account.fields.limits
  local ours = text(revision) .. ' ' .. set.text
  if theirs and theirs ~= ours then
    local other, limits = string.match(theirs, '^(%d+) (.*)$')
    other = tonumber(other)
    if limits ~= set.text and other == revision then
      refusal = refusal or {kind = 'D', accountID = accountID, theirs = theirs}
      return nil
    elseif other > revision then
      ours = theirs
      if limits ~= set.text then
        account.set, account.effective = limitset(limits), theirs
        if bad then
          bad = nil
          refusal = refusal or {kind = 'D', accountID = accountID, theirs = theirs}
          return nil
        end
      end
    end
  end
  if theirs ~= ours then
    account.fields.limits, account.dirty.limits = ours, true
  end
  if account.set.log and account.fields.kind and not kinds[account.fields.kind] then
    refusal = {again = 'logs'}
    return nil
  end
  openAccount(account)
  local old = theirs and string.match(theirs, ' (.*)') or account.set.text
  if old ~= account.set.text then
    account.replaced = true
    if shape(old) ~= shape(set.text) then
      account.renewed = endOf(account)
      account.fields.renewed, account.dirty.renewed = text(account.renewed), true
    end
  end
  -- What has left every window expires, and nothing is lost by that.
  if isLost(account) then
    call('HDEL', base, 'a:' .. accountID)
    forgetLogs(account)
    missing()
  end
  opened[accountID] = account
  return account
end

-- consider looks at one account. Its score in the index becomes the slot that a
-- booking of one unit would get from it if it came long ago: never more than what
-- the next booking gets, and for a free account when it became free, so that of
-- several free accounts the one that has been free the longest is taken.
local function consider(member, common, commonFrom)
  local accountID, set = readMember(member)
  if not set or cost > most or cost > mostOf(set, queue.scopes) then
    return
  end
  local account = openEffective(accountID, set)
  if refusal and not refusal.member and refusal.accountID == accountID then
    refusal.member = member
  end
  if not account or cost > mostOf(account.set, queue.scopes) then
    return
  end
  local accounts = {account, unpack(common)}
  local paused = pausedUntil(accountID)
  if paused <= now then
    paused = 0 -- it is over
  end
  local last = lastOf(account, queue.name)
  local since = scoredFrom(account, last)
  -- Only the index needs the slot of the account's own limits.
  local rule, capacity = last, nil
  if index then
    rule, capacity = settle({account}, since, queue)
  end
  local from = math.max(commonFrom, state.graceEnds, released(accountID, paused, last))
  local slot = rule
  if not index or #common > 0 or rule < from then
    slot, capacity = settle(accounts, math.max(from, rule), queue)
  end
  if not queue.several or paused > 0 then
    capacity = cost
  end
  if index then
    local name = string.sub(index, #base + 7)
    if queue.name == '' then
      account.digest = name
    end
    scores[member] = math.max(paused, cost == 1 and rule or (settle({account}, since, one)))
    local field = 'index:' .. name
    if account.fields[field] ~= member then
      account.fields[field] = member
      call('HSET', account.key, field, member)
      if not account.fields.made then
        call('PEXPIRE', account.key, text(DAY / 1000))
      end
    end
  end
  if not best or slot < best.slot then
    best = {slot = slot, capacity = capacity, accounts = accounts, member = member, accountID = accountID}
  end
end

-- rankBehind returns how many members of the index do not stand behind that one of
-- that score, which may have another score by now.
local function rankBehind(score, member)
  local low = call('ZCOUNT', index, '-inf', '(' .. text(score))
  local high = low + call('ZCOUNT', index, text(score), text(score))
  while low < high do
    local middle = math.floor((low + high) / 2)
    if call('ZRANGE', index, middle, middle)[1] <= member then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- inTurn returns an iterator over the members of the index and their scores: in the order of the
-- scores, and equal ones like the names on a ring, from the one behind the member that was booked
-- last. Without the ring the first name would get all bookings that one instant sees. It can go
-- on behind a member.
local function inTurn(from)
  local last = from and from.newest or newest
  local rank, chunk, row, place = 0, 4, {}, 1
  local score, ring
  -- ringOf returns the ranks of the members of the score: names up to the last, from begins on, and
  -- those behind it, from middle on, which come first.
  local function ringOf(begins, upper)
    local ends = call('ZCOUNT', index, '-inf', text(score))
    return {begins = begins, middle = rankBehind(score, last), ends = ends, upper = upper}
  end
  if from then
    -- Those of its score that come before it may have other scores by now.
    score, rank = from.score, rankBehind(from.score, from.member)
    ring = ringOf(call('ZCOUNT', index, '-inf', '(' .. text(score)), from.member > last)
  end
  local function following()
    if ring and ring.upper and rank == ring.ends then
      rank, ring.upper, row = ring.begins, false, {}
    end
    if ring and not ring.upper and rank == ring.middle then
      rank, ring, row = ring.ends, nil, {}
    end
    if place > #row then
      row, place, chunk = call('ZRANGE', index, rank, rank + chunk - 1, 'WITHSCORES'), 1, 64
    end
    local member = row[place]
    if member and not ring and tonumber(row[place + 1]) ~= score then
      score = tonumber(row[place + 1])
      -- A score with one member has no ring.
      if member <= last and (row[place + 3] or row[place + 1]) == row[place + 1] then
        ring = ringOf(rank, true)
        rank, row = ring.middle, {}
        return following()
      end
    end
    rank, place = rank + 1, place + 2
    return member, score
  end
  return following
end

-- choose finds the account of the index that can take the booking first. If that is
-- much to do it returns where to go on. The scores that were found until then are
-- kept, so that it is done once for what comes after.
local function choose(common, commonFrom, from)
  -- No account is free before the shared ones are.
  local soonest = math.max(#common > 0 and settle(common, commonFrom, queue) or commonFrom, state.graceEnds)
  if from and from.before ~= '' and call('ZSCORE', index, from.before) then
    consider(from.before, common, commonFrom)
  end
  local seenMember, seenScore
  for member, score in inTurn(from) do
    -- Scores are never too late, unless a caller's clock goes back behind cancelled slots
    -- that had passed: nothing behind this one is earlier.
    if best and now >= seen and best.slot <= math.max(soonest, score) then
      return nil
    end
    if work > ENOUGH and seenMember then
      return none('again', now, 0, table.concat({'behind ' .. text(seenScore), seenMember,
        best and best.member or refusal and refusal.member or '', from and from.newest or newest}, '\0'))
    end
    seenMember, seenScore, work = member, score, work + 1
    if (not from or member ~= from.before) and not excluded[string.match(member, ':(.*)$')] then
      consider(member, common, commonFrom)
    end
  end
  return nil
end

-- enforce puts the limits of the request in force on the accounts of the best answer.
local function enforce()
  for _, each in ipairs(best.accounts) do
    if each.replaced then
      lowerScores(each)
      each.replaced = false
    end
  end
  if revision > highest then
    highest = revision
    call('HSET', base, 'revision', text(revision))
    renew(now)
  end
end

-- touch readies an account of the best answer for what changes it.
local function touch(account)
  if account.booked == 0 then
    booked[#booked + 1] = account
  end
  if account.replaced then
    vacant.forget(account, math.max(now, account.edge))
  end
end

-- enforceReplaced enforces limits that replace others, though nothing is booked.
local function enforceReplaced()
  local some = false
  for _, each in ipairs(best.accounts) do
    if each.replaced then
      touch(each)
      some = true
    end
  end
  if some then
    enforce()
  end
end

-- commitBest records so many bookings where the first was found to be best, and returns the
-- first one's entry.
local function commitBest(count)
  local account, parts = best.accounts[1], {}
  for i, each in ipairs(best.accounts) do
    touch(each)
    parts[i] = addUnits(each, queue, best.slot, cost * count, 'commit', cost)
  end
  enforce()
  newestAccount = account
  if index then
    scores[best.member] = settle({account}, scoredFrom(account, lastOf(account, queue.name)), one)
    newest = best.member
  end
  return queue.name .. '\0' .. table.concat(parts)
end

local function writeScores()
  for member, score in pairs(scores) do
    call('ZADD', index, text(score), member)
  end
end

-- makeIndex puts accounts aside, until all are there. It returns what else there is to
-- ask for. An index that others have made meanwhile is as good.
local function makeIndex()
  local aside = index .. ':new'
  local some = {}
  for i = members, #ARGV do
    some[#some + 1], some[#some + 2] = '0', ARGV[i]
  end
  for i = 1, #some, 1000 do
    call('ZADD', aside, 'NX', unpack(some, i, math.min(i + 999, #some)))
  end
  call('PEXPIRE', aside, text(DAY / 1000))
  if told == 'part' then
    return none('rest', now, 0, '')
  elseif call('ZCARD', aside) ~= behind.count then
    return none('accounts', now, 0, '') -- another has made an index of what was put aside
  end
  call('RENAME', aside, index)
  newest = ''
  return nil
end

-- isLate reports whether a booking may not wait for a slot.
local function isLate(place, slot)
  local longest = waits[place]
  return longest > MODULUS or longest < MODULUS and slot > now + longest
end

-- book carries out the booking of that place, and those behind it that have the same
-- answer, and returns how many these are; or what else than answers there is to return.
local function book(place, from)
  cost, best, scores, refusal = costs[place], nil, {}, nil
  queue.cost, queue.several = cost, not index and costs[place + 1] == cost
  local all = pausedUntil('*')
  all = all > now and all or 0
  local common, commonFrom = {}, now
  if all > 0 then
    all = released('*', all, tonumber(call('HGET', base .. ':apart', '*last') or 0))
    commonFrom, queue.several = all, false
  end
  for i, other in ipairs(shared) do
    common[i] = openEffective(other.accountID, other.set)
    if common[i] then
      commonFrom = math.max(commonFrom, pausedUntil(other.accountID))
      if cost > mostOf(common[i].set, queue.scopes) then
        refusal = refusal or {kind = 'C'}
      end
    end
  end
  local unsettled
  if not refusal then
    if index then
      unsettled = choose(common, commonFrom, from)
    else
      consider('1:' .. ARGV[first], common, commonFrom)
    end
  end
  if bad then
    return nil, redis.error_reply(bad)
  end
  if before and state.lost > recovered then
    return nil, none('lost', now, state.version, '')
  elseif refusal and refusal.again then
    return nil, none(refusal.again, now, 0, '')
  elseif unsettled then
    writeScores()
    return nil, unsettled
  end
  -- alike returns how many bookings from this one on, no more than a number, have its cost
  -- and may wait for the slot or, if late, may not.
  local function alike(number, slot, late)
    local count = 1
    while count < number and costs[place + count] == cost and
      (not slot or late == isLate(place + count, slot)) do
      count = count + 1
    end
    return count
  end
  if not best then
    refusal = refusal or {kind = 'C'}
    local count = alike(#costs)
    answer(refusal.kind, count, 0, refusal.accountID or '', refusal.theirs or '', '')
    return count
  end
  local effective, slot, count = best.accounts[1].effective or '', best.slot
  if slot > MODULUS + MODULUS then
    return nil, redis.error_reply('ERR ration: the slot lies beyond the year 2255')
  elseif isLate(place, slot) then
    count = alike(#costs, slot, true)
    enforceReplaced()
    answer('L', count, slot, best.accountID, effective, '')
  elseif now < state.graceEnds then
    -- What others enter again meanwhile would find its place taken.
    count = alike(#costs, slot, false)
    enforceReplaced()
    answer('W', count, state.graceEnds, best.accountID, effective, '')
  else
    count = alike(math.floor(best.capacity / cost), slot, false)
    answer('B', count, slot, best.accountID, effective, commitBest(count))
    if all > 0 then
      call('HSET', base .. ':apart', '*last', text(all))
    end
  end
  writeScores()
  return count
end

if index and call('EXISTS', index) == 1 then
  if told == 'all' then
    call('UNLINK', index .. ':new')
  end
elseif index then
  if told ~= 'part' and told ~= 'all' then
    return none('accounts', now, 0, '')
  end
  local other = makeIndex()
  if other then
    return other
  end
  -- Before all that could still fail.
  call('PEXPIRE', index, text(DAY / 1000))
end
-- Nothing that could fail comes after the first booking.
if not record then
  enroll(ARGV[2], now + 2 * GONE)
end
forgetFields(now)
if newest == '' and index then
  enroll(newestField, now + DAY)
end
local deadline = #costs > 1 and clock('', 0) + LONG
local done = 0
while done < #costs do
  local count, other = book(done + 1, done == 0 and told == 'behind' and behind or nil)
  if other and done == 0 then
    writeState()
    return other
  elseif other then
    break
  end
  done = done + count
  -- The rest is asked for again.
  if deadline and (work > ENOUGH or (done % 8 == 0 and clock('', 0) > deadline)) then
    break
  end
end
-- What the budget's hash is to have, in one command.
local changes = {}
for _, account in ipairs(booked) do
  writeAccount(account, changes)
end
if index then
  call('PEXPIRE', index, text(DAY / 1000))
end
-- Of the others that were booked it is not told: to count costs as much as to book.
local used = newestAccount and leftIn(newestAccount, now) or 0
stepped = stepped ~= 0 and stepped + MODULUS or 0
local reply = numbered .. struct.pack('>I8I8I8I8', now, state.version, stepped, used) .. table.concat(answers)
changes[#changes + 1], changes[#changes + 2] = ARGV[2], reply
changes[#changes + 1], changes[#changes + 2] = 'state', packState()
if newest ~= '' then
  changes[#changes + 1], changes[#changes + 2] = newestField, struct.pack('>d', now) .. newest
end
inParts('HSET', base, changes)
return reply
