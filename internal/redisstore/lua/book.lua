-- book.lua: records bookings, each on the account that can take it first.
--
-- ARGV  1 nine numbers of 8 bytes each, most significant byte first, 0 for none:
--         the number of the call in its session; a nonce; now, in microseconds,
--         for the server's clock; now as the caller reckons it from earlier
--         answers; the now of the caller's last booking; the instant of the last
--         loss that the caller has recovered; by how much the caller found the
--         server's clock to be ahead; the version of the budget's card that the caller knows; for how long from
--         now no slot is of use
--         then the bookings, in order: for those of one cost 'U', how many they are in
--         2 bytes, the cost in 6, the longest wait in microseconds in 8, of
--         which 2^52 is no bound, and the units of each meter in 6. 'D' if not all wait equally long: the longest
--         wait is the least of theirs, and those of each follow, in 8 bytes
--       2 the field of the session, s: and 16 bytes: session.lua. Behind it, if these are in place of other
--         bookings, 32 digits that name who asks, and of each other booking its slot in 8 bytes, its ID and its
--         holder, 32 digits each, and the account and the entry behind their lengths in 2 bytes
--       3 'INDEX EXCLUDED SETS ZONES SHARED RESERVE SCOPES SET', in one argument as
--         Redis takes its time for each: the accounts' index, DIGEST*UNITS, empty for a single
--         account: see store.IndexUnits; between commas the accounts of it that must not be charged; how
--         many sets of limits, zones, and meters and shared accounts there are; what the bookings keep
--         back for others, in thousandths of each limit; the scopes of the requests, between
--         commas; and the first set, with its edition before it: see editionset
--         then each zone: see readZones
--         each other set
--         each meter, SET:*UNIT (sets count from 1), and each shared account, SET:ACCOUNT
--         the account, if it is a single one, which has the first set; or, nothing if the
--         index has them, or one of
--           'part', and some of the accounts, which are put aside
--           'all N', and the rest of the N accounts, with which the index is made
--           'copy N', the index of other accounts from which that of these N is made, DIGEST*UNITS, and
--           what changes: '-SET:ACCOUNT', or with a plus
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
--                  account has other limits of the same edition; 'W' not booked: a log was
--                  lost, so ask again at the slot; 'N' none was answered
--         count    2 bytes: how many have this answer
--         slot     8 bytes
--         before   7 bytes: what names the first one's entry, if there is no entry
--         lengths  2 bytes each: of what follows
--         account
--         effective  the account's limits, 'REVISION VERSION SET', where they are not those
--                  that were given but newer, or the others of the same edition
--         entry    the first one's: each other's begins where the one before it ends;
--                  '' for that of a single queue of a SlidingLog, see account.lua
--
--         or one record of kind 'N', which has in place of the account
--         'lost'      a log was lost since the caller last booked
--         'ahead'     the clock is ahead of what the caller reckons
--         'behind'    the budget has another card than the caller knows
--         'algorithms'  ask again with the parts of all algorithms: another worker's limits have one
--         'accounts'  ask again with the accounts
--         'rest'      ask again with more of them
--         'again'     the search is not at its end: ask again with the arguments that
--                     stand in place of effective, with a zero between two
--         'stale'     the call is not its session's next; now and the version are 0

-- A request has
--
--   given, reckoned, before, recovered, found  the instants of ARGV[1]; false for none, but given 0
--   card          the version of the budget's card that the caller knows
--   lead          for how long from now no slot is of use
--   costs, waits  of each booking its cost, and its longest wait
--   units         of each booking the units of the meters, in 6 bytes each
--   queue         the bookings' queue: its name, scopes and reserve
--   setOf         a function from the number of a set of limits to the set, or nil
--   meters        what is charged beside each account, with unit and set
--   shared        the shared accounts, each with accountID and set
--   most          the most that a booking may cost by their limits
--   index         the key of the accounts' index; false: there is a single account
--   pools         what stands before and behind the name of an index of the queue, in its key
--   excluded      the accounts of the index that must not be charged, by name
--   single        the member that is the single account, or nil
--   told          what ARGV tells of the index: '', 'part', 'all', 'copy' or 'behind'
--   members       the place in ARGV from which on it tells of members
--   count         with 'all' and 'copy': how many members the index has
--   old           with 'copy': the index that it is made from; all that follows are changes
--   behind        with 'behind': where a search goes on: score, member, before and newest

-- readMember reads SET:ACCOUNT, and returns the account and its set of limits.
local function readMember(request, member)
  local number, accountID = string.match(member or '', '^(%d+):(.+)$')
  local set = number and request.setOf(tonumber(number))
  if not set then
    bad = bad or 'ERR ration: an account has no set of limits'
  end
  return accountID, set
end

local readRequest

do
  -- So many sets of limits are read before all else. Where there are more, those of others than are
  -- needed are not read at all.
  local READ = 64

  -- setReader returns what reads the sets of limits, each once. The second is the argument at a place.
  local function setReader(firstSet, count, second)
    local sets = {}
    local function setOf(number)
      if not sets[number] and number and number >= 1 and number <= count then
        sets[number] = editionset(number == 1 and firstSet or ARGV[second - 2 + number])
      end
      return sets[number]
    end
    for i = 1, math.min(count, READ) do
      setOf(i)
    end
    return setOf
  end

  -- readBookings reads the costs of the bookings, their units of so many meters, and their longest waits.
  local function readBookings(asked, meters)
    local costs, units, waits, at = {}, {}, {}, 73
    while at + 16 + 6 * meters <= #asked do
      local kind, count, cost, longest = struct.unpack('>c1I2I6I8', asked, at)
      local metered = string.sub(asked, at + 17, at + 16 + 6 * meters)
      at = at + 17 + #metered
      for i = 1, meters do
        among(struct.unpack('>I6', metered, 6 * i - 5), 'the units of a meter', 0, COSTLIEST)
      end
      if (kind ~= 'U' and kind ~= 'D') or (kind == 'D' and at + 8 * count - 1 > #asked) then
        break
      end
      among(cost, 'a cost', 1, COSTLIEST)
      for i = 1, count do
        local patience = kind == 'U' and longest or struct.unpack('>I8', asked, at + 8 * (i - 1))
        costs[#costs + 1], units[#units + 1] = cost, metered
        waits[#waits + 1] = among(patience, 'the longest wait', 0, 4503599627370497)
      end
      at = at + (kind == 'D' and 8 * count or 0)
    end
    if at ~= #asked + 1 or #costs == 0 or #costs > 1024 then
      bad = bad or 'ERR ration: there must be from 1 to 1024 bookings, of 17 bytes and more'
    end
    return costs, units, waits
  end

  -- readShared reads the meters and the shared accounts, from a place in ARGV on, and returns the place behind them.
  -- The queue's name is made from theirs.
  local function readShared(request, first, count)
    local queue, names = request.queue, {}
    count = whole(count, 'the number of shared accounts', 0, 100)
    for i = 1, count do
      local accountID, set = readMember(request, ARGV[first + i - 1])
      local unit = unitOf(accountID or '')
      names[i] = accountID
      if set and unit then
        request.meters[#request.meters + 1] = {unit = unit, set = set}
      elseif set then
        request.shared[#request.shared + 1] = {accountID = accountID, set = set}
        request.most = math.min(request.most, mostOf(set, queue.scopes))
      end
    end
    if queue.scopes ~= '' or queue.reserve > 0 or #names > 0 then
      queue.name = queue.scopes .. '~' .. queue.reserve .. '~' .. table.concat(names, ',')
    end
    return first + count
  end

  -- readIndex reads what is told of the accounts' index, from a place in ARGV on.
  local function readIndex(request, first)
    request.told, request.members = '', first + 1
    if not ARGV[first] then
      return
    end
    local told, number = string.match(ARGV[first], '^(%l+) ?(%d*)$')
    request.told = told
    if told == 'behind' then
      request.behind = {
        score = whole(number, 'a score', 0, MODULUS + MODULUS), member = ARGV[first + 1],
        before = ARGV[first + 2], newest = ARGV[first + 3],
      }
      if #ARGV ~= first + 3 then
        bad = bad or 'ERR ration: a search goes on with a score and three members'
      end
    elseif told == 'all' or told == 'copy' then
      request.count = whole(number, 'the number of accounts', 1, 1000000)
      request.old = told == 'copy' and string.match(ARGV[first + 1] or '', '^%x+%*%d+$')
      if told == 'copy' and not request.old then
        bad = bad or 'ERR ration: an index is made from that of other accounts'
      end
    elseif told ~= 'part' then
      bad = bad or 'ERR ration: what is told of an index is \'part\', \'all N\', \'copy N\' or \'behind SCORE\''
    end
  end

  -- checkMembers checks what is told of the members of the index.
  local function checkMembers(request, setCount)
    local pattern = '^(%d+):.+$'
    if request.told == 'copy' then
      request.members, pattern = request.members + 1, '^[-+](%d+):.+$'
    end
    for i = request.members, #ARGV do
      local number = string.match(ARGV[i], pattern)
      number = number and tonumber(number)
      local maybeNone = request.told == 'behind' and i > request.members and ARGV[i] == ''
      if (not number or number < 1 or number > setCount) and not maybeNone then
        bad = bad or 'ERR ration: an account has no set of limits'
      end
    end
  end

  -- readRequest returns the request, or nil. Whether it is right, bad tells.
  function readRequest()
    local given, reckoned, before, recovered, found, card, lead = struct.unpack('>I8I8I8I8I8I8I8', ARGV[1], 17)
    for _, instant in ipairs({given, reckoned, before, recovered, found, card, lead}) do
      among(instant, 'an instant', 0, 4503599627370496)
    end
    local index, others, setCount, zoneCount, sharedCount, reserve, scopes, firstSet = string.match(
      ARGV[3] or '', '^([%x*]*) ([%w_,-]*) (%d+) (%d+) (%d+) (%d+) ([%w%._,-]*) (%d.*)$')
    local digest, units = string.match(index or '', '^(%x+)%*(%d+)$')
    if not index or index ~= '' and not digest then
      bad = 'ERR ration: a booking tells of its accounts in eight parts'
      return nil
    end
    local request = {
      given = given, reckoned = reckoned > 0 and reckoned, before = before > 0 and before,
      recovered = recovered, found = found > 0 and found,
      queue = {name = '', scopes = scopes, reserve = whole(reserve, 'the share kept', 0, 999)},
      card = card, lead = lead, meters = {}, shared = {}, most = COSTLIEST, index = false, excluded = {}, told = '',
    }
    setCount = whole(setCount, 'the number of limit sets', 1, 10000)
    local first = readZones(4, zoneCount)
    request.setOf = setReader(firstSet, setCount, first)
    first = readShared(request, first + setCount - 1, sharedCount)
    request.costs, request.units, request.waits = readBookings(ARGV[1], #request.meters)
    if not digest then
      request.single, request.members = ARGV[first] and '1:' .. ARGV[first], first + 1
      if #ARGV ~= first or ARGV[first] == '' then
        bad = bad or 'ERR ration: exactly one account goes without an index'
      end
    else
      -- Its scores are of slots for so many units: one that costs less may have an earlier one.
      request.digest = digest
      request.least = whole(units, 'the units of the index', 1, math.min(COSTLIEST, unpack(request.costs)))
      request.pools = {base .. ':pool:', request.queue.name ~= '' and ':' .. request.queue.name or ''}
      request.index = table.concat(request.pools, index)
      for accountID in string.gmatch(others, '[^,]+') do
        request.excluded[accountID] = true
      end
      readIndex(request, first)
    end
    checkMembers(request, setCount)
    return request
  end
end

-- bookingClock returns the time of a request, and by how much the server's clock was found to have stepped,
-- or 0. If the caller must compare the clocks again it returns nil, and the time by the server's.
--
-- The server's clock may step. Back, all would wait for it to catch up: time
-- stands still instead, as every window then only gets longer. Forward, logs
-- would seem to have left their windows: if the caller's clock has not moved so
-- far, and no other caller has seen such a time, the server's is put back. Two
-- clocks drift apart by less than a thousandth. A question that was long on its
-- way looks the same, so the caller compares again when it has the answer.
-- A caller that gives a now of its own and reckons none means what it says.
local function bookingClock(request, state)
  local reckoned, seen, offset, stepped = request.reckoned, state.seen, state.offset, 0
  local now = request.given > 0 and request.given + offset or clock('', offset)
  local compares = reckoned or request.given == 0
  if now < seen - STEP and compares then
    stepped = seen - now
  elseif reckoned and seen <= reckoned + STEP and
    now > reckoned + STEP + math.max(reckoned - seen, 0) / 1000 then
    if not request.found then
      return nil, now
    end
    stepped = -request.found
  end
  if stepped ~= 0 then
    now = now + stepped
    state.offset = offset + stepped
    writeState()
  end
  -- One that slips back by less stands still as well.
  if now < seen and compares then
    now = seen
  end
  return now, stepped
end

-- A batch, which is the bookings of one call, has
--
--   request    as above
--   state      the budget's: common.lua
--   now, seen  the time, and the latest that any booking before has seen
--   highest    the highest revision that limits were booked with
--   opened     the accounts that are open, by ID
--   booked     those of them that were booked, in that order
--   last       the account that was charged last, or nil
--   newest, newestField  the member of the index that was booked last, '' if none was; its field
--   least      the queue with a cost of as many units as the index is for
--   answers    the records of the reply so far
--
-- and a turn, which is one booking and those behind it with the same answer,
--
--   cost, queue        the booking's
--   common, commonFrom  the shared accounts, and the first instant that they and a pause of all allow
--   paused             the first slot behind a pause of all accounts; false: there is none
--   best               the best account so far: slot, capacity, accounts, member, accountID
--   scores             the scores that the index is to have
--   refusal            why there is no account, if so

-- effectiveLimits compares the limits that an account keeps with those of the request.
-- It returns those of the later edition, and their text; or nil if people must decide between two, with the text
-- if this script lacks an algorithm of the later ones.
local function effectiveLimits(account, set)
  local theirs, ours = account.fields.limits, text(set.revision) .. ' ' .. text(set.version) .. ' ' .. set.text
  if not theirs or theirs == ours then
    return set, ours
  end
  local revision, version, limits = splitEdition(theirs)
  if limits == set.text then
    local later = isLater(revision, version, set.revision, set.version)
    account.effective = later and theirs or nil
    return set, later and theirs or ours
  elseif isLater(set.revision, set.version, revision, version) then
    return set, ours
  elseif revision == set.revision and version == set.version then
    return nil
  end
  readOwnZones(account)
  local effective = limitset(limits)
  if bad then
    bad = nil
    return nil, theirs
  end
  account.effective = theirs
  return effective, theirs
end

-- openEffective opens an account with its effective limits: those of the latest
-- edition. Two limits of one edition are for people to decide between. It returns nil if the account
-- cannot be booked, and the turn's refusal says why.
local function openEffective(batch, turn, accountID, set)
  local account = batch.opened[accountID]
  if account then
    return account
  end
  account = readAccount(accountID, set, batch.now)
  local theirs = account.fields.limits
  local effective, ours = effectiveLimits(account, set)
  if not effective and ours then
    turn.refusal = {again = 'algorithms'}
    return nil
  elseif not effective then
    turn.refusal = turn.refusal or {kind = 'D', accountID = accountID, theirs = theirs}
    return nil
  end
  if effective.log and not kinds[account.fields.kind or effective.log] then
    turn.refusal = {again = 'algorithms'}
    return nil
  end
  account.given = set
  openUnder(account, effective, ours)
  account.asked = text(set.revision) .. ' ' .. text(set.version) .. ' ' .. set.text
  if isLost(account) then
    forgetLost(account, batch.state, batch.seen)
  end
  batch.opened[accountID] = account
  return account
end

-- noteScore notes the score of an account in the index: the slot that a booking of the index's units would
-- get from it if it came long ago. That is never more than what the next booking gets, and for a free account when
-- it became free, so that of several free accounts the one that has been free the longest is taken.
local function noteScore(batch, turn, account, member, score)
  local index = batch.request.index
  local name = string.sub(index, #base + 7)
  if turn.queue.name == '' then
    account.digest = batch.request.digest
  end
  turn.scores[member] = score
  local field = 'index:' .. name
  if account.fields[field] ~= member then
    account.fields[field] = member
    call('HSET', account.key, field, member)
    if not account.fields.made then
      call('PEXPIRE', account.key, text(DAY / 1000))
    end
  end
end

-- consider looks at one account, which becomes the turn's best if it can take the booking sooner than
-- others.
local function consider(batch, turn, member)
  local request, queue, cost = batch.request, turn.queue, turn.cost
  local accountID, set = readMember(request, member)
  if not set or cost > request.most or cost > mostOf(set, queue.scopes) then
    return
  end
  local account = openEffective(batch, turn, accountID, set)
  local refusal = turn.refusal
  if refusal and not refusal.member and refusal.accountID == accountID then
    refusal.member = member
  end
  if not account or cost > mostOf(account.set, queue.scopes) then
    return
  end
  local accounts = {account}
  local metersFrom = 0
  for i, other in ipairs(request.meters) do
    local meter, units = openEffective(batch, turn, meterID(accountID, other.unit), other.set), turn.units[i]
    if not meter or units > mostOf(meter.set, queue.scopes) then
      return
    end
    meter.units, metersFrom = units, math.max(metersFrom, pausedUntil(meter.id))
    if units > 0 then
      accounts[#accounts + 1] = meter
    end
  end
  for _, each in ipairs(turn.common) do
    accounts[#accounts + 1] = each
  end
  local paused = pausedUntil(accountID)
  if paused <= batch.now then
    paused = 0 -- it is over
  end
  local last = lastOf(account, queue.name)
  local since = scoredFrom(account, last)
  -- Only the index needs the slot of the account's own limits.
  local slot, capacity = last, nil
  if request.index then
    slot, capacity = settle({account}, since, queue)
    noteScore(batch, turn, account, member,
      math.max(paused, cost == batch.least.cost and slot or (settle({account}, since, batch.least))))
  end
  local free = released(accountID, batch.now)
  local from = math.max(turn.commonFrom, metersFrom, batch.state.graceEnds, free)
  if not request.index or #accounts > 1 or slot < from then
    slot, capacity = settle(accounts, math.max(from, slot), queue)
  end
  if not queue.several or free > 0 then
    capacity = 1
  end
  if not turn.best or slot < turn.best.slot then
    turn.best = {slot = slot, capacity = capacity, accounts = accounts, member = member, accountID = accountID,
      released = free}
  end
end

-- After so many commands a script leaves the rest to another.
local ENOUGH = 100

-- rankBehind returns how many members of the index do not stand behind that one of
-- that score, which may have another score by now.
local function rankBehind(index, score, member)
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
local function inTurn(index, last, from)
  local rank, chunk, row, place = 0, 4, {}, 1
  local score, ring
  -- ringOf returns the ranks of the members of the score: names up to the last, from begins on, and
  -- those behind it, from middle on, which come first.
  local function ringOf(begins, upper)
    local ends = call('ZCOUNT', index, '-inf', text(score))
    return {begins = begins, middle = rankBehind(index, score, last), ends = ends, upper = upper}
  end
  if from then
    -- Those of its score that come before it may have other scores by now.
    score, rank = from.score, rankBehind(index, from.score, from.member)
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

-- choose finds the account of the index that can take the turn's booking first. If that is much to do it
-- returns where to go on, as the arguments of another call. The scores that were found until then are
-- kept, so that it is done once for what comes after. From is where an earlier call stopped, or nil.
local function choose(batch, turn, from)
  local index = batch.request.index
  -- No account is free before the shared ones are.
  local soonest = #turn.common > 0 and settle(turn.common, turn.commonFrom, turn.queue) or turn.commonFrom
  soonest = math.max(soonest, batch.state.graceEnds)
  if from and from.before ~= '' and call('ZSCORE', index, from.before) then
    consider(batch, turn, from.before)
  end
  local last = from and from.newest or batch.newest
  local seenMember, seenScore
  for member, score in inTurn(index, last, from) do
    -- Scores are never too late, unless a caller's clock goes back behind cancelled slots
    -- that had passed: nothing behind this one is earlier.
    if turn.best and batch.now >= batch.seen and turn.best.slot <= math.max(soonest, score) then
      return nil
    end
    if work > ENOUGH and seenMember then
      local before = turn.best and turn.best.member or turn.refusal and turn.refusal.member or ''
      return table.concat({'behind ' .. text(seenScore), seenMember, before, last}, '\0')
    end
    seenMember, seenScore, work = member, score, work + 1
    if (not from or member ~= from.before) and not batch.request.excluded[string.match(member, ':(.*)$')] then
      consider(batch, turn, member)
    end
  end
  return nil
end

-- addMembers puts the members aside that ARGV has.
local function addMembers(request, aside)
  local some = {}
  for i = request.members, #ARGV do
    some[#some + 1], some[#some + 2] = '0', ARGV[i]
  end
  for i = 1, #some, 1000 do
    call('ZADD', aside, 'NX', unpack(some, i, math.min(i + 999, #some)))
  end
end

-- copyMembers puts the members of another index aside, with the changes that ARGV has. Their scores are not those
-- of the other: what lowers a score goes by what each account knows to have it.
local function copyMembers(request, aside)
  call('ZUNIONSTORE', aside, 1, table.concat(request.pools, request.old), 'WEIGHTS', 0)
  for i = request.members, #ARGV do
    local member = string.sub(ARGV[i], 2)
    if string.sub(ARGV[i], 1, 1) == '-' then
      call('ZREM', aside, member)
    else
      call('ZADD', aside, 0, member)
    end
  end
end

-- makeIndex makes the accounts' index of what ARGV tells. It returns what else there is to ask for; or, if
-- the index is there, nil and whether it is new. One that others have made meanwhile is as good.
local function makeIndex(request)
  local index, told = request.index, request.told
  local aside = index .. ':new'
  if call('EXISTS', index) == 1 then
    if told == 'all' then
      call('UNLINK', aside)
    end
    return nil
  elseif told == 'copy' and call('EXISTS', table.concat(request.pools, request.old)) == 1 then
    copyMembers(request, aside)
  elseif told == 'part' or told == 'all' then
    addMembers(request, aside)
  else
    return 'accounts'
  end
  call('PEXPIRE', aside, text(DAY / 1000))
  if told == 'part' then
    return 'rest'
  elseif call('ZCARD', aside) ~= request.count then
    if told == 'copy' then
      call('UNLINK', aside) -- what is told next must not be added to it
    end
    return 'accounts' -- another has made an index of what was put aside, or the other is not what it was
  end
  call('RENAME', aside, index)
  -- Before all that could still fail.
  call('PEXPIRE', index, text(DAY / 1000))
  return nil, true
end

-- enforce puts the limits of the request in force on the accounts of the best answer.
local function enforce(batch, best)
  for _, each in ipairs(best.accounts) do
    if each.replaced then
      lowerScores(each)
      each.replaced = false
    end
  end
  local revision = batch.highest
  for _, each in ipairs(best.accounts) do
    revision = math.max(revision, each.given.revision)
  end
  if revision > batch.highest then
    batch.highest = revision
    call('HSET', base, 'revision', text(revision))
    renew(batch.now)
  end
end

-- touch readies an account of the best answer for what changes it.
local function touch(batch, account)
  if account.booked == 0 then
    batch.booked[#batch.booked + 1] = account
  end
end

-- enforceReplaced enforces limits that replace others, though nothing is booked.
local function enforceReplaced(batch, best)
  local some = false
  for _, each in ipairs(best.accounts) do
    if each.replaced then
      touch(batch, each)
      some = true
    end
  end
  if some then
    enforce(batch, best)
  end
end

-- commitBest books so many of the turn's bookings where the first was found to be best, and returns the
-- first one's entry.
local function commitBest(batch, turn, count)
  local best, queue, parts = turn.best, turn.queue, {}
  for i, each in ipairs(best.accounts) do
    local cost = each.units or turn.cost
    touch(batch, each)
    parts[i] = addUnits(each, queue, best.slot, cost * count, 'commit', cost)
  end
  -- The meters come behind the account: those without units are not among what is charged.
  for i, units in ipairs(turn.units) do
    if units == 0 then
      table.insert(parts, i + 1, NOTHING)
    end
  end
  enforce(batch, best)
  local account = best.accounts[1]
  batch.last = account
  if batch.request.index then
    turn.scores[best.member] = settle({account}, scoredFrom(account, lastOf(account, queue.name)), batch.least)
    batch.newest = best.member
  end
  return queue.name .. '\0' .. table.concat(parts)
end

local function writeScores(index, scores)
  for member, score in pairs(scores) do
    call('ZADD', index, text(score), member)
  end
end

-- So many microseconds after its beginning a script leaves the rest to another, where the clock tells.
local LONG = 2000

if #ARGV[1] < 72 or (#ARGV[2] ~= 18 and #ARGV[2] < 51) then
  return redis.error_reply('ERR ration: a booking begins with nine numbers, and a session of 18 bytes')
end
local numbered, session = string.sub(ARGV[1], 1, 16), string.sub(ARGV[2], 1, 18)

-- none returns the reply that no booking is answered, and why.
local function none(why, now, number, arguments)
  return numbered .. struct.pack('>I8I8I8I8c1I2I8I7I2I2I2', now, number, 0, 0, 'N', 1, 0, 0, #why, #arguments, 0) ..
    why .. arguments
end

-- answer adds a record of what became of some bookings to the reply.
local function answer(batch, kind, count, slot, accountID, effective, entry)
  batch.answers[#batch.answers + 1] =
    struct.pack('>c1I2I8I7I2I2I2', kind, count, slot, 0, #accountID, #effective, #entry) ..
    accountID .. effective .. entry
end

-- isLate reports whether a booking may not wait for a slot.
local function isLate(batch, place, slot)
  local longest = batch.request.waits[place]
  return longest > MODULUS or longest < MODULUS and slot > batch.now + longest
end

-- alike returns how many bookings from a place on, no more than a number, have the cost and units of the first and
-- may wait for the slot or, if late, may not. Without a slot all may.
local function alike(batch, place, number, slot, late)
  local costs, units, count = batch.request.costs, batch.request.units, 1
  while count < number and costs[place + count] == costs[place] and units[place + count] == units[place] and
    (not slot or late == isLate(batch, place + count, slot)) do
    count = count + 1
  end
  return count
end

-- beginTurn returns a turn for the booking of a place: its queue, the shared accounts, and the instant from
-- which on they and a pause of all allow a slot.
local function beginTurn(batch, place)
  local request, now = batch.request, batch.now
  local costs, queue = request.costs, request.queue
  local turn = {cost = costs[place], units = {}, queue = queue, common = {}, scores = {}, released = {}}
  turn.commonFrom = now + request.lead
  queue.cost, queue.several = turn.cost, not request.index and alike(batch, place, 2) == 2
  for i = 1, #request.meters do
    turn.units[i] = struct.unpack('>I6', request.units[place], 6 * i - 5)
  end
  local free = released('*', now)
  if free > 0 then
    turn.commonFrom, queue.several = math.max(turn.commonFrom, free), false
    turn.released['*'] = free
  end
  for i, other in ipairs(request.shared) do
    local account = openEffective(batch, turn, other.accountID, other.set)
    turn.common[i] = account
    if account then
      local from = released(other.accountID, now)
      if from > 0 then
        turn.commonFrom, queue.several = math.max(turn.commonFrom, from), false
        turn.released[other.accountID] = from
      end
      if turn.cost > mostOf(account.set, queue.scopes) then
        turn.refusal = turn.refusal or {kind = 'C'}
      end
    end
  end
  return turn
end

-- book carries out the booking of a place, and those behind it that have the same answer, and returns how
-- many these are; or what else than answers there is to return.
local function book(batch, place, from)
  local request, state = batch.request, batch.state
  local turn = beginTurn(batch, place)
  local goOn
  if not turn.refusal and request.index then
    goOn = choose(batch, turn, from)
  elseif not turn.refusal then
    consider(batch, turn, request.single)
  end
  local refusal, best, costs = turn.refusal, turn.best, request.costs
  if bad then
    return nil, redis.error_reply(bad)
  elseif request.before and state.lost > request.recovered then
    return nil, none('lost', batch.now, state.version, '')
  elseif refusal and refusal.again then
    return nil, none(refusal.again, batch.now, 0, '')
  elseif goOn then
    writeScores(request.index, turn.scores)
    return nil, none('again', batch.now, 0, goOn)
  end
  if not best then
    refusal = refusal or {kind = 'C'}
    local count = alike(batch, place, #costs)
    answer(batch, refusal.kind, count, 0, refusal.accountID or '', refusal.theirs or '', '')
    return count
  end
  local effective, slot = best.accounts[1].effective or '', best.slot
  local count
  if slot > MODULUS + MODULUS then
    return nil, redis.error_reply('ERR ration: the slot lies beyond the year 2255')
  elseif isLate(batch, place, slot) then
    count = alike(batch, place, #costs, slot, true)
    enforceReplaced(batch, best)
    answer(batch, 'L', count, slot, best.accountID, effective, '')
  elseif batch.now < state.graceEnds then
    -- What others record again meanwhile would find its place taken.
    count = alike(batch, place, #costs, slot, false)
    enforceReplaced(batch, best)
    answer(batch, 'W', count, state.graceEnds, best.accountID, effective, '')
  else
    count = alike(batch, place, best.capacity, slot, false)
    batch.slots = batch.slots + count * slot
    answer(batch, 'B', count, slot, best.accountID, effective, commitBest(batch, turn, count))
    if best.released > 0 then
      turn.released[best.accountID] = best.released
    end
    for accountID, given in pairs(turn.released) do
      release(accountID, given)
    end
  end
  writeScores(request.index, turn.scores)
  return count
end

-- bookAll carries out the bookings in their order, as many as there is time for; the rest is asked for
-- again. It returns what else than answers there is to return, or nil.
local function bookAll(batch)
  local costs = batch.request.costs
  local deadline = #costs > 1 and clock('', 0) + LONG
  local done = 0
  while done < #costs do
    local count, other = book(batch, done + 1, done == 0 and batch.request.behind or nil)
    if other then
      return done == 0 and other or nil
    end
    done = done + count
    if deadline and (work > batch.enough or (done % 8 == 0 and clock('', 0) > deadline)) then
      return nil
    end
  end
  return nil
end

-- readNewest returns the member of an index that was booked last, or '', and the field that has it.
local function readNewest(index)
  if not index then
    return '', nil
  end
  local field = 'i:' .. string.sub(index, #base + 7)
  return string.sub(call('HGET', base, field) or '', 9), field
end

-- finish writes what the batch has changed, and returns the reply.
local function finish(batch, stepped)
  local state, index = batch.state, batch.request.index
  -- What the budget's hash is to have, in one command.
  local changes = {}
  for _, account in ipairs(batch.booked) do
    writeAccount(account, changes)
  end
  if index then
    call('PEXPIRE', index, text(DAY / 1000))
  end
  -- Of the others that were booked it is not told: to count costs as much as to book.
  local used = batch.last and leftIn(batch.last, batch.now) or 0
  stepped = stepped ~= 0 and stepped + MODULUS or 0
  local reply = numbered .. struct.pack('>I8I8I8I8', batch.now, state.version, stepped, used) ..
    table.concat(batch.answers)
  changes[#changes + 1], changes[#changes + 2] = session, reply
  changes[#changes + 1], changes[#changes + 2] = 'state', packState()
  if batch.newest ~= '' then
    changes[#changes + 1], changes[#changes + 2] = batch.newestField, struct.pack('>d', batch.now) .. batch.newest
  end
  inParts('HSET', base, changes)
  return reply
end

-- readInstead returns the bookings in place of which these are.
local function readInstead()
  local all, at = {}, 51
  while at <= #ARGV[2] do
    local read, slot, id, holder, accountID, entry, behind = pcall(struct.unpack, '>I8c32c32I2c0I2c0', ARGV[2], at)
    if not read or not parse(entry) then
      bad = bad or 'ERR ration: what a booking is in place of has no entry'
      return all
    end
    all[#all + 1], at = {slot = slot, id = id, holder = holder, accountID = accountID, entry = entry}, behind
  end
  return all
end

-- cancelInstead cancels them, and returns their accounts.
local function cancelInstead(all, now)
  local opened, before = {}, work
  for _, one in ipairs(all) do
    if string.find(one.holder, '[^0]') then
      call('ZREM', heldKey(one.holder), heldMember(one.id, one.accountID, one.entry))
    end
    if call('SET', base .. ':id:' .. one.id, 'cancelled', 'PX', REMEMBER, 'NX') then
      cancelEntry(opened, one.entry, one.accountID, one.slot, now)
    end
  end
  writeOpened(opened)
  work = before -- it is done, and what is left is to be booked
  return opened
end

-- run carries out the call.
local function run()
  local known = call('HMGET', base, session, 'state', 'revision')
  local record = known[1]
  local again = answered(record, numbered)
  if again then
    return again == 'stale' and none('stale', 0, 0, '') or again
  end
  local state, request, instead = readState(known[2]), readRequest(), readInstead()
  if bad then
    return redis.error_reply(bad)
  end
  local seen, before = state.seen, request.before
  local now, stepped = bookingClock(request, state)
  if not now then
    return none('ahead', stepped, state.version, '')
  end
  -- Of a loss since, that was noted, the grace has begun.
  if before and seen < before and (before > state.lost or state.graceEnds <= state.lost) then
    noteLoss(state, now, seen)
  elseif not known[2] then
    renew(now)
  end
  state.seen = math.max(now, seen, before or 0)
  if seen == 0 then
    writeState()
    outlast(text(DAY / 1000))
  end
  noPauses = now >= state.pausesEnd
  -- A caller that has booked before must record that again first.
  if before and state.lost > request.recovered then
    writeState()
    return none('lost', now, state.version, '')
  end
  if state.card ~= request.card then
    writeState()
    return none('behind', now, state.version, '')
  end
  local queue = request.queue
  local newest, newestField = readNewest(request.index)
  local batch = {
    request = request, state = state, now = now, seen = seen, highest = tonumber(known[3] or 0),
    opened = {}, booked = {}, slots = 0, newest = newest,
    -- Those who wait for a slot are in no hurry for an earlier one, and what is cancelled is not to be named again.
    enough = instead[1] and 5 * ENOUGH or ENOUGH, newestField = newestField, answers = {},
    least = {name = queue.name, scopes = queue.scopes, reserve = queue.reserve, cost = request.least},
  }
  if request.index then
    local asked, made = makeIndex(request)
    if asked then
      return none(asked, now, 0, '')
    elseif made then
      batch.newest = ''
    end
  end
  -- Nothing that could fail comes after the first booking.
  if not record then
    enroll(session, now + 2 * GONE)
  end
  forgetFields(now)
  if batch.newest == '' and request.index then
    enroll(newestField, now + DAY)
  end
  local freed = cancelInstead(instead, now)
  local other = bookAll(batch)
  local later = 0
  for _, one in ipairs(instead) do
    later = later + one.slot
  end
  if other or batch.slots < later then
    announceFreed(freed, string.sub(ARGV[2], 19, 50))
  end
  if other then
    writeState()
    return other
  end
  return finish(batch, stepped)
end

return run()
