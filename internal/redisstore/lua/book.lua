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
--       2 the field of the session, s: and 16 bytes: session.lua
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

-- So many microseconds after its beginning a script leaves the rest to another, where the clock tells.
local LONG = 2000

if #ARGV[1] < 72 or #ARGV[2] ~= 18 then
  return redis.error_reply('ERR ration: a booking begins with nine numbers, and a session of 18 bytes')
end
local numbered = string.sub(ARGV[1], 1, 16)

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
  local turn = {cost = costs[place], units = {}, queue = queue, common = {}, scores = {}}
  turn.commonFrom, turn.paused = now + request.lead, false
  queue.cost, queue.several = turn.cost, not request.index and alike(batch, place, 2) == 2
  for i = 1, #request.meters do
    turn.units[i] = struct.unpack('>I6', request.units[place], 6 * i - 5)
  end
  local all = pausedUntil('*')
  if all > now then
    turn.paused = released('*', all, tonumber(call('HGET', base .. ':apart', '*last') or 0))
    turn.commonFrom, queue.several = math.max(turn.commonFrom, turn.paused), false
  end
  for i, other in ipairs(request.shared) do
    local account = openEffective(batch, turn, other.accountID, other.set)
    turn.common[i] = account
    if account then
      turn.commonFrom = math.max(turn.commonFrom, pausedUntil(other.accountID))
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
    answer(batch, 'B', count, slot, best.accountID, effective, commitBest(batch, turn, count))
    if turn.paused then
      call('HSET', base .. ':apart', '*last', text(turn.paused))
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
    if deadline and (work > ENOUGH or (done % 8 == 0 and clock('', 0) > deadline)) then
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
  changes[#changes + 1], changes[#changes + 2] = ARGV[2], reply
  changes[#changes + 1], changes[#changes + 2] = 'state', packState()
  if batch.newest ~= '' then
    changes[#changes + 1], changes[#changes + 2] = batch.newestField, struct.pack('>d', batch.now) .. batch.newest
  end
  inParts('HSET', base, changes)
  return reply
end

-- run carries out the call.
local function run()
  local known = call('HMGET', base, ARGV[2], 'state', 'revision')
  local record = known[1]
  local again = answered(record, numbered)
  if again then
    return again == 'stale' and none('stale', 0, 0, '') or again
  end
  local state, request = readState(known[2]), readRequest()
  if bad then
    return redis.error_reply(bad)
  end
  local seen, before = state.seen, request.before
  local now, stepped = bookingClock(request, state)
  if not now then
    return none('ahead', stepped, state.version, '')
  end
  if before and seen < before then
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
    opened = {}, booked = {}, newest = newest, newestField = newestField, answers = {},
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
    enroll(ARGV[2], now + 2 * GONE)
  end
  forgetFields(now)
  if batch.newest == '' and request.index then
    enroll(newestField, now + DAY)
  end
  local other = bookAll(batch)
  if other then
    writeState()
    return other
  end
  return finish(batch, stepped)
end

return run()
